from django.http import HttpResponse


def tenant_list(request):
    return HttpResponse("Sitewise")
