"""manage.py ask TENANT/MODEL "question": the answer a visitor would get, with its sources."""

from dataclasses import asdict

from django.core.management.base import CommandError

from chat.answer import Asked, answer_now
from chat.turns import QuestionTooLong, QuotaReached
from models_app.llm import ProviderError
from models_app.targets import activated_model
from tenants.reporting import ReportingCommand


class Command(ReportingCommand):
    help = "Ask a model one question."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("target", metavar="TENANT/MODEL")
        parser.add_argument("question")

    def report(self, *, target, question, **options):
        question = question.strip()
        if not question:
            raise CommandError("The question is empty.")
        try:
            with activated_model(target) as model:
                answered = answer_now(Asked(model=model, question=question, channel="command"))
        except (QuestionTooLong, QuotaReached, ProviderError) as error:
            raise CommandError(str(error)) from error
        return {
            "question": question,
            "answer": answered.text,
            "answered_by": answered.answered_by,
            "unanswered": answered.is_unanswered,
            "finish_reason": answered.finish_reason,
            "sources": [asdict(source) for source in answered.sources],
            "context_tokens": answered.context_tokens,
            "prompt_tokens": answered.prompt_tokens,
            "completion_tokens": answered.completion_tokens,
            "degraded": answered.degraded,
        }

    def as_text(self, report):
        sources = [f"  {source['rank']}. {source['title']}  {source['url']}".rstrip() for source in report["sources"]]
        who = {"llm": "the LLM", "extract": "quoted passages"}[report["answered_by"]]
        lines = [report["answer"], "", f"Answered by {who}, from {report['context_tokens']:,} tokens of context."]
        lines += ["Sources:", *sources] if sources else []
        lines += [f"Note: {report['degraded']}"] if report["degraded"] else []
        return "\n".join(lines)
