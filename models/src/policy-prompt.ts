import type { ChatMessage, ToolSchema } from "@cria/core";
import { CalculatorTool } from "@cria/tools";

/** The system message of demonstrations, the dataset and rollouts. */
export const systemPrompt = "You solve problems. Use the tool to compute, then answer with ####.";

export const calculatorSchema: ToolSchema = new CalculatorTool().schema;

export function makePrompt(question: string): ChatMessage[] {
  return [
    { role: "system", content: systemPrompt },
    { role: "user", content: question },
  ];
}

/**
 * ChatML with Hermes tool calls, in the policy's own spelling. Tools are listed compactly, with each argument's type,
 * to keep prompts short; tool messages are user turns, as in Qwen's templates.
 */
export const chatTemplate = `{%- set has_system = messages[0].role == "system" -%}
{%- if has_system or tools -%}
{{- "<|im_start|>system\\n" -}}
{%- if has_system -%}
{{- messages[0].content -}}
{%- endif -%}
{%- if tools -%}
{{- ("\\n" if has_system else "") + "<tools>" -}}
{%- for tool in tools -%}
{{- '\\n{"name":"' + tool.function.name + '","arguments":{' -}}
{%- if tool.function.parameters.properties -%}
{%- for key, value in tool.function.parameters.properties.items() -%}
{{- '"' + key + '":"' + (value.type if value.type is string else "any") + '"' + ("," if not loop.last else "") -}}
{%- endfor -%}
{%- endif -%}
{{- "}}" -}}
{%- endfor -%}
{{- "\\n</tools>" -}}
{%- endif -%}
{{- "<|im_end|>\\n" -}}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == "user" -%}
{{- "<|im_start|>user\\n" + message.content + "<|im_end|>\\n" -}}
{%- elif message.role == "tool" -%}
{{- "<|im_start|>user\\n<tool_response>\\n" + message.content + "\\n</tool_response><|im_end|>\\n" -}}
{%- elif message.role == "assistant" -%}
{{- "<|im_start|>assistant\\n" + (message.content or "") -}}
{%- if message.tool_calls -%}
{%- for call in message.tool_calls -%}
{{- "\\n" if message.content or not loop.first else "" -}}
{{- '<tool_call>\\n{"name":"' + call.function.name + '","arguments":' + (call.function.arguments | tojson(separators=[",", ":"])) + "}\\n</tool_call>" -}}
{%- endfor -%}
{%- endif -%}
{{- "<|im_end|>\\n" -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- "<|im_start|>assistant\\n" -}}
{%- endif -%}`;
