"""Sends an agent's trace twice, over OTLP in protobuf with gzip, and prints its id: export_agent.py URL AUTHORIZATION"""

import json
import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

url, authorization = sys.argv[1:]
kept = InMemorySpanExporter()
provider = TracerProvider(resource=Resource.create({"service.name": "guest-agent"}))
provider.add_span_processor(SimpleSpanProcessor(kept))
tracer = provider.get_tracer("agents")
with tracer.start_as_current_span("agent", attributes={"gen_ai.conversation.id": "web-1", "user.id": "ann"}) as agent:
    messages = [{"role": "user", "parts": [{"type": "text", "content": "A room?"}]}]
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.input.messages": json.dumps(messages),
    }
    with tracer.start_as_current_span("chat", attributes=chat):
        pass
    with tracer.start_as_current_span("book", attributes={"gen_ai.operation.name": "execute_tool"}) as book:
        book.set_status(trace.StatusCode.ERROR, "no room is free")
exporter = OTLPSpanExporter(endpoint=url, headers={"Authorization": authorization}, compression=Compression.Gzip)
for _ in range(2):
    assert exporter.export(kept.get_finished_spans()) is SpanExportResult.SUCCESS
print(format(agent.get_span_context().trace_id, "032x"))
