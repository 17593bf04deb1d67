"""The shapes of the public API's answers, for its OpenAPI document: api_shapes.py and dify.py make the answers."""

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers as fields


class UsageSerializer(fields.Serializer):
    prompt_tokens = fields.IntegerField()
    completion_tokens = fields.IntegerField()
    total_tokens = fields.IntegerField()


class SourceSerializer(fields.Serializer):
    rank = fields.IntegerField()
    title = fields.CharField()
    url = fields.CharField(help_text="Empty for what was written by hand or comes from a file.")


class AnswerMessageSerializer(fields.Serializer):
    role = fields.ChoiceField(choices=["assistant"])
    content = fields.CharField()
    refusal = fields.CharField(allow_null=True)


class ChoiceSerializer(fields.Serializer):
    index = fields.IntegerField()
    message = AnswerMessageSerializer()
    logprobs = fields.DictField(allow_null=True)
    finish_reason = fields.CharField(help_text="stop, length or content_filter.")


class ChatCompletionSerializer(fields.Serializer):
    id = fields.CharField()
    object = fields.ChoiceField(choices=["chat.completion"])
    created = fields.IntegerField(help_text="Seconds since 1970.")
    model = fields.CharField()
    choices = ChoiceSerializer(many=True)
    usage = UsageSerializer()
    sources = SourceSerializer(many=True)
    answered_by = fields.CharField(help_text="llm, or extract where the best passages were quoted.")
    unanswered = fields.BooleanField(help_text="Whether nothing was found that answers.")
    cut = fields.BooleanField(required=False, help_text="Whether the answer breaks off.")
    unsupported = fields.ListField(
        child=fields.DictField(), required=False, help_text="Facts of the answer that stand in no source."
    )
    offers_contact = fields.BooleanField(required=False, help_text="Whether a visitor may leave an e-mail address.")
    session_id = fields.CharField(allow_null=True)


class ModelSerializer(fields.Serializer):
    id = fields.CharField(help_text="The model's slug.")
    object = fields.ChoiceField(choices=["model"])
    created = fields.IntegerField()
    owned_by = fields.CharField()


MODEL_LIST = inline_serializer(
    "ModelList", {"object": fields.ChoiceField(choices=["list"]), "data": ModelSerializer(many=True)}
)


class ErrorDetailSerializer(fields.Serializer):
    message = fields.CharField()
    type = fields.CharField()
    param = fields.CharField(allow_null=True)
    code = fields.CharField(allow_null=True)


class ApiErrorSerializer(fields.Serializer):
    error = ErrorDetailSerializer()


class DifyErrorSerializer(fields.Serializer):
    code = fields.CharField()
    message = fields.CharField()
    status = fields.IntegerField()


class DifyUsageSerializer(UsageSerializer):
    prompt_unit_price = fields.CharField()
    prompt_price_unit = fields.CharField()
    prompt_price = fields.CharField()
    completion_unit_price = fields.CharField()
    completion_price_unit = fields.CharField()
    completion_price = fields.CharField()
    total_price = fields.CharField()
    currency = fields.CharField()
    latency = fields.FloatField(help_text="Seconds.")


class DifyResourceSerializer(fields.Serializer):
    position = fields.IntegerField()
    dataset_id = fields.UUIDField()
    dataset_name = fields.CharField()
    document_id = fields.UUIDField()
    document_name = fields.CharField()
    segment_id = fields.UUIDField()
    score = fields.FloatField()
    content = fields.CharField()
    url = fields.CharField()


class DifyMetadataSerializer(fields.Serializer):
    usage = DifyUsageSerializer()
    retriever_resources = DifyResourceSerializer(many=True)


class DifyMessageSerializer(fields.Serializer):
    event = fields.ChoiceField(choices=["message"])
    task_id = fields.UUIDField()
    id = fields.UUIDField()
    message_id = fields.UUIDField()
    conversation_id = fields.CharField()
    mode = fields.ChoiceField(choices=["chat"])
    answer = fields.CharField()
    metadata = DifyMetadataSerializer()
    created_at = fields.IntegerField()


class DifyResultSerializer(fields.Serializer):
    result = fields.ChoiceField(choices=["success"])


class DifySwitchSerializer(fields.Serializer):
    enabled = fields.BooleanField()


class DifyParametersSerializer(fields.Serializer):
    opening_statement = fields.CharField()
    suggested_questions = fields.ListField(child=fields.CharField())
    suggested_questions_after_answer = DifySwitchSerializer()
    speech_to_text = DifySwitchSerializer()
    text_to_speech = DifySwitchSerializer()
    retriever_resource = DifySwitchSerializer()
    annotation_reply = DifySwitchSerializer()
    more_like_this = DifySwitchSerializer()
    sensitive_word_avoidance = DifySwitchSerializer()
    user_input_form = fields.ListField(child=fields.DictField())
    file_upload = fields.DictField()
    system_parameters = fields.DictField()
