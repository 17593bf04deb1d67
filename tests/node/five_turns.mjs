// Two conversations of five turns with OpenAI's own client, streamed and not, then every kind of refusal.
// node five_turns.mjs BASE_URL KEY LIMITED_KEY QUESTIONS; prints one JSON document.
import OpenAI from "openai";

const [baseURL, apiKey, limitedKey, questions] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });

async function whole(question, session) {
  const answer = await client.chat.completions.create({
    model: "support",
    messages: [{ role: "user", content: question }],
    metadata: { session_id: session },
  });
  return {
    text: answer.choices[0].message.content,
    finish: answer.choices[0].finish_reason,
    usage: answer.usage,
    session: answer.session_id,
    sources: answer.sources,
  };
}

async function streamed(question, session) {
  const stream = await client.chat.completions.create({
    model: "support",
    messages: [{ role: "user", content: [{ type: "text", text: question }] }],
    metadata: { session_id: session },
    stream: true,
    stream_options: { include_usage: true },
  });
  const turn = { text: "", pieces: 0 };
  for await (const chunk of stream) {
    const choice = chunk.choices[0];
    if (choice?.delta?.content) {
      turn.text += choice.delta.content;
      turn.pieces += 1;
    }
    turn.finish = choice?.finish_reason ?? turn.finish;
    turn.session = chunk.session_id ?? turn.session;
    turn.sources = chunk.sources ?? turn.sources;
    turn.usage = chunk.usage ?? turn.usage;
  }
  return turn;
}

async function converse(ask) {
  const turns = [];
  for (const question of JSON.parse(questions)) {
    turns.push(await ask(question, turns.at(-1)?.session ?? ""));
  }
  return turns;
}

async function refusal(client, change = {}) {
  try {
    await client.chat.completions.create({
      model: "support",
      messages: [{ role: "user", content: "Anybody there?" }],
      ...change,
    });
  } catch (error) {
    return { name: error.constructor.name, status: error.status, code: error.code, wait: error.headers?.get("retry-after") };
  }
  return null;
}

const wrong = new OpenAI({ baseURL, apiKey: "sws_wrong", maxRetries: 0 });
const limited = new OpenAI({ baseURL, apiKey: limitedKey, maxRetries: 0 });
const models = [];
for await (const model of client.models.list()) models.push(model.id);

console.log(
  JSON.stringify({
    models,
    whole: await converse(whole),
    streamed: await converse(streamed),
    refusals: {
      key: await refusal(wrong),
      model: await refusal(client, { model: "never" }),
      request: await refusal(client, { messages: [] }),
      first: await refusal(limited),
      limit: await refusal(limited),
    },
  }),
);
