/* Sitewise chat widget, version 1. One file, no dependency, no cookie. Before the first message it stores nothing; from
   then on sessionStorage holds the conversation's id, and nothing else. Until it is opened it asks the server nothing.

   What the server sends becomes elements by createElement and text nodes alone: no HTML is parsed here, so nothing that a
   page, a snippet or an LLM says can run, also where the page's policy asks for trusted types. */
(() => {
  "use strict";
  const script = document.currentScript || document.querySelector("script[data-key][data-model][src*='/widget/']");
  if (!script || !window.fetch || !Element.prototype.attachShadow) return;
  const options = { ...script.dataset };
  const server = new URL(script.src, location.href).origin;
  const { key, model } = options;
  const mode = ["inline", "search"].includes(options.mode) ? options.mode : "bubble";
  const storageKey = `sitewise ${model} ${key.slice(0, 16)}`;

  // The few words that are needed before the server is asked: to open, to ask, and that the server is out of reach.
  const FIRST_WORDS = {
    ar: ["فتح الدردشة", "اكتب سؤالك", "تعذّر الوصول إلى الدردشة. حاول مرة أخرى."],
    cs: ["Otevřít chat", "Vaše otázka", "Chat není dostupný. Zkuste to znovu."],
    da: ["Åbn chat", "Dit spørgsmål", "Chatten kan ikke nås. Prøv igen."],
    de: ["Chat öffnen", "Ihre Frage", "Der Chat ist nicht erreichbar. Bitte versuchen Sie es noch einmal."],
    en: ["Open chat", "Your question", "The chat cannot be reached. Please try again."],
    es: ["Abrir el chat", "Su pregunta", "No se puede acceder al chat. Inténtelo de nuevo."],
    fi: ["Avaa keskustelu", "Kysymyksesi", "Keskusteluun ei saada yhteyttä. Yritä uudelleen."],
    fr: ["Ouvrir le chat", "Votre question", "Le chat est injoignable. Veuillez réessayer."],
    he: ["פתיחת הצ׳אט", "השאלה שלך", "לא ניתן להתחבר לצ׳אט. נסו שוב."],
    it: ["Apri la chat", "La tua domanda", "La chat non è raggiungibile. Riprova."],
    ja: ["チャットを開く", "質問を入力", "チャットに接続できません。もう一度お試しください。"],
    nb: ["Åpne chat", "Spørsmålet ditt", "Chatten kan ikke nås. Prøv igjen."],
    nl: ["Chat openen", "Uw vraag", "De chat is niet bereikbaar. Probeer het opnieuw."],
    pl: ["Otwórz czat", "Twoje pytanie", "Czat jest nieosiągalny. Spróbuj ponownie."],
    pt: ["Abrir o chat", "A sua pergunta", "Não é possível aceder ao chat. Tente novamente."],
    ro: ["Deschide chatul", "Întrebarea dvs.", "Chatul nu poate fi accesat. Încercați din nou."],
    sv: ["Öppna chatten", "Din fråga", "Chatten kan inte nås. Försök igen."],
    tr: ["Sohbeti aç", "Sorunuz", "Sohbete ulaşılamıyor. Lütfen tekrar deneyin."],
    uk: ["Відкрити чат", "Ваше запитання", "Чат недоступний. Спробуйте ще раз."],
    zh: ["打开聊天", "输入您的问题", "无法连接聊天，请重试。"],
  };
  const language = chooseLanguage();
  const [OPEN_WORDS, ASK_WORDS, AWAY_WORDS] = FIRST_WORDS[language];
  const TITLE = options.title || location.hostname || ASK_WORDS;
  const isRightToLeft = options.direction ? options.direction === "rtl" : ["ar", "he"].includes(language);
  const isOnTheLeft = options.position ? options.position === "left" : isRightToLeft;

  const CSS = `
:host { all: initial; }
:host([hidden]) { display: none; }
* { box-sizing: border-box; margin: 0; font: inherit; color: inherit; letter-spacing: inherit; }
.root { all: initial; --ink: #17201e; --soft: #53615d; --surface: #fff; --sunken: #f1f4f3; --line: #dbe2df; --edge: #76857f; --bad: #a6231b;
  display: block; color: var(--ink); font: 15px/1.55 ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  text-align: start; -webkit-text-size-adjust: 100%; overflow-wrap: anywhere; color-scheme: light; }
.dark { --ink: #e6edeb; --soft: #a6b5b0; --surface: #161c1b; --sunken: #212a28; --line: #33403d; --edge: #7d908a; --bad: #ff9a90; color-scheme: dark; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
[hidden] { display: none !important; }
button { background: none; border: 0; padding: 0; cursor: pointer; text-align: inherit; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; border-radius: 8px; }
svg { display: block; width: 20px; height: 20px; fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }
a { color: var(--link); text-underline-offset: .16em; }

.launch { position: fixed; bottom: max(20px, env(safe-area-inset-bottom)); right: 20px; z-index: 2147483000; display: grid; place-items: center;
  width: 56px; height: 56px; border-radius: 50%; background: var(--fill); color: var(--on-fill); border: 2px solid var(--surface); box-shadow: 0 6px 24px rgb(0 0 0 / 28%); }
.left .launch { right: auto; left: 20px; }
.launch svg { width: 26px; height: 26px; }
.launch:focus-visible { border-radius: 50%; }

.panel { display: flex; flex-direction: column; min-height: 0; padding: 0; background: var(--surface); color: var(--ink); border: 1px solid var(--line); border-radius: 16px; overflow: hidden; }
dialog.panel:not([open]) { display: none; }
.bubble .panel { position: fixed; inset: auto 20px 20px auto; z-index: 2147483000; width: 400px; max-width: calc(100vw - 40px); height: min(660px, 100vh - 40px); height: min(660px, 100dvh - 40px);
  max-height: none; box-shadow: 0 18px 60px rgb(0 0 0 / 30%); }
.left.bubble .panel { inset: auto auto 20px 20px; }
.inline .panel { height: min(600px, 85vh); }
.search .panel { border-radius: 14px; }
.search .log { max-height: 70vh; }
.head { display: flex; align-items: center; gap: 4px; padding: 10px 10px 10px 18px; background: var(--fill); color: var(--on-fill); }
[dir=rtl] .head { padding: 10px 18px 10px 10px; }
.head h2 { flex: 1; min-width: 0; padding: 4px 0; font-size: 16px; font-weight: 650; line-height: 1.3; }
.head h2:focus { outline: none; }
.head .icon { color: inherit; }
.head .icon:hover { background: rgb(127 127 127 / 30%); }
.head :focus-visible { outline-color: var(--on-fill); outline-offset: -3px; }
.icon { display: grid; place-items: center; flex: none; min-width: 36px; min-height: 36px; border-radius: 8px; color: var(--soft); }
.icon:hover { background: var(--sunken); }
.icon[aria-pressed=true] { background: var(--sunken); color: var(--link); }
.icon[aria-pressed=true] svg { fill: currentColor; fill-opacity: .3; }

.log { position: relative; flex: 1; min-height: 0; overflow-y: auto; overscroll-behavior: contain; padding: 18px; display: flex; flex-direction: column; gap: 18px; }
.log:focus-visible { outline-offset: -3px; }
.turn { display: grid; grid-template-columns: minmax(0, 1fr); gap: 14px; }
.asked { justify-self: end; max-width: 86%; padding: 9px 14px; border-radius: 16px 16px 4px 16px; background: var(--fill); color: var(--on-fill); white-space: pre-wrap; }
[dir=rtl] .asked { border-radius: 16px 16px 16px 4px; }
.words { display: grid; grid-template-columns: minmax(0, 1fr); gap: 10px; }
.words.plain { white-space: pre-wrap; }
.words:empty { display: none; }
.words :is(h1, h2, h3, h4, h5, h6) { font-weight: 650; font-size: 1.05em; }
.words strong { font-weight: 650; }
.words em { font-style: italic; }
.words :is(ul, ol) { padding-inline-start: 1.4em; }
.words li + li { margin-top: 4px; }
.words li > :is(ul, ol) { margin-top: 4px; }
.words :is(code, pre) { font: .9em/1.5 ui-monospace, "SF Mono", "Cascadia Mono", monospace; background: var(--sunken); border-radius: 5px; }
.words code { padding: 1px 4px; }
.words pre { padding: 10px 12px; overflow-x: auto; }
.words pre code { padding: 0; background: none; }
.words blockquote { display: grid; grid-template-columns: minmax(0, 1fr); gap: 8px; padding-inline-start: 12px; border-inline-start: 3px solid var(--line); color: var(--soft); }
.words hr { width: 100%; border: 0; border-top: 1px solid var(--line); }
.wide { overflow-x: auto; }
.words table { border-collapse: collapse; font-size: .93em; }
.words :is(th, td) { padding: 5px 9px; border: 1px solid var(--line); text-align: start; vertical-align: top; overflow-wrap: break-word; }
.words th { font-weight: 650; background: var(--sunken); }
.wait { display: flex; gap: 5px; padding: 8px 0; }
.wait i { width: 8px; height: 8px; border-radius: 50%; background: var(--edge); animation: beat 1.2s infinite ease-in-out; }
.wait i:nth-child(2) { animation-delay: .15s; }
.wait i:nth-child(3) { animation-delay: .3s; }
@keyframes beat { 0%, 60%, 100% { opacity: .35; } 30% { opacity: 1; } }

.sources { display: grid; gap: 6px; padding: 10px 12px; border: 1px solid var(--line); border-radius: 10px; font-size: 13.5px; }
.sources b { font-weight: 650; color: var(--soft); font-size: 12.5px; }
.sources ol { display: grid; gap: 4px; padding: 0; list-style: none; }
.sources li { display: grid; line-height: 1.4; }
.sources a { display: inline-block; padding: 2px 0; font-weight: 550; }
.sources small { color: var(--soft); font-size: 12.5px; }
.tools { display: flex; align-items: center; gap: 2px; margin-inline-start: -8px; min-height: 36px; }
.tools svg { width: 18px; height: 18px; }
.tools span { padding-inline: 6px; color: var(--soft); font-size: 13.5px; }

.card { display: grid; grid-template-columns: minmax(0, 1fr); gap: 12px; padding: 14px; border: 1px solid var(--line); border-radius: 12px; }
.card b, .card legend, .card label.name { font-weight: 600; padding: 0; }
.card fieldset { border: 0; padding: 0; min-width: 0; display: grid; gap: 6px; }
.field { display: grid; gap: 6px; }
input:not([type=radio]), textarea { width: 100%; min-height: 42px; padding: 9px 12px; font-size: 16px; line-height: 1.4; color: var(--ink); background: var(--surface); border: 1px solid var(--edge); border-radius: 10px; }
::placeholder { color: var(--soft); opacity: 1; }
.pick { display: flex; align-items: center; gap: 10px; min-height: 36px; padding: 4px 10px; border: 1px solid var(--line); border-radius: 10px; cursor: pointer; }
.pick:has(:checked) { border-color: var(--link); background: var(--sunken); }
.pick input { width: 18px; height: 18px; flex: none; accent-color: var(--link); }
.row { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; }
.row input { flex: 1 1 150px; width: auto; }
.solid, .line { min-height: 40px; padding: 8px 16px; border-radius: 10px; font-weight: 600; border: 1px solid var(--edge); }
.solid { background: var(--fill); color: var(--on-fill); border-color: transparent; }
.line:hover { background: var(--sunken); }
.starters { display: grid; gap: 8px; justify-items: start; padding: 0; list-style: none; }
.starters button, .chip { padding: 8px 14px; min-height: 38px; border: 1px solid var(--edge); border-radius: 19px; color: var(--link); font-weight: 550; line-height: 1.35; }
.starters button:hover, .chip:hover { background: var(--sunken); }
.chip[aria-pressed=true] { background: var(--fill); color: var(--on-fill); border-color: transparent; }
.note { color: var(--soft); font-size: 13.5px; }
.wrong { color: var(--bad); font-size: 14px; }
.quiet { display: grid; gap: 14px; justify-items: center; margin: auto; padding: 32px 20px; text-align: center; color: var(--soft); }
.quiet > svg { width: 32px; height: 32px; }
.panel.short { height: auto; min-height: 240px; }

.ask { display: flex; align-items: end; gap: 8px; padding: 10px 12px; border-top: 1px solid var(--line); background: var(--surface); }
.ask textarea { resize: none; max-height: 140px; }
.search .ask { border-top: 0; }
.search .log:not([hidden]) { border-top: 1px solid var(--line); }
.send { display: grid; place-items: center; flex: none; width: 42px; height: 42px; border-radius: 10px; background: var(--fill); color: var(--on-fill); }
[dir=rtl] .send svg { transform: scaleX(-1); }
.foot { padding: 0 14px 9px; color: var(--soft); font-size: 12px; line-height: 1.4; text-align: center; }
@media (max-width: 480px), (max-height: 420px) {
  .bubble .panel { inset: 0; left: 0; width: 100vw; max-width: none; height: 100vh; height: 100dvh; border: 0; border-radius: 0; }
}
@media (prefers-reduced-motion: no-preference) {
  .bubble .panel[open] { animation: rise .16s ease-out; }
  @keyframes rise { from { opacity: 0; transform: translateY(10px); } }
}
@media (prefers-reduced-motion: reduce) { .wait i { animation: none; } }
@media (forced-colors: active) { .launch, .send, .solid, .asked, .head { border: 1px solid; } }
@media print { .bubble { display: none; } }
`;

  const ICONS = {
    chat: "M21 12a8 8 0 0 1-8 8H4l2-3.5A8 8 0 1 1 21 12ZM9 12h.01M13 12h.01M17 12h.01",
    close: "M6 6l12 12M18 6 6 18",
    again: "M4 4v6h6M4.5 10A8 8 0 1 1 4 14",
    send: "M4 12 20 4l-5 16-3.5-6.5L4 12Zm7.5 1.5L20 4",
    stop: "M7 7h10v10H7z",
    copy: "M9 9h11v11H9zM5 15H4V4h11v1",
    done: "M5 13l4 4L19 7",
    up: "M7 11v9H4v-9h3Zm0 0 4-8a2 2 0 0 1 2 2v4h6a2 2 0 0 1 2 2.3l-1.2 6.5a2 2 0 0 1-2 1.7H7",
    down: "M7 13V4H4v9h3Zm0 0 4 8a2 2 0 0 0 2-2v-4h6a2 2 0 0 0 2-2.3l-1.2-6.5a2 2 0 0 0-2-1.7H7",
    closed: "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  };

  // --- Elements -----------------------------------------------------------------------------------
  function make(tag, traits = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(traits)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
    return element;
  }

  function icon(name) {
    const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    picture.setAttribute("viewBox", "0 0 24 24");
    picture.setAttribute("aria-hidden", "true");
    line.setAttribute("d", ICONS[name]);
    picture.append(line);
    return picture;
  }

  function iconButton(name, label, onclick, traits = {}) {
    return make("button", { type: "button", class: "icon", "aria-label": label, title: label, onclick, ...traits }, icon(name));
  }

  // Rendered Markdown comes as a tree: a text, or [tag, attributes, ...children]. What is not listed here stays out.
  const TAGS = new Set(
    "p br hr ul ol li strong em s code pre blockquote h1 h2 h3 h4 h5 h6 a span table thead tbody tr th td".split(" ")
  );

  function grow(node) {
    if (typeof node === "string") return document.createTextNode(node);
    const [tag, attributes, ...children] = node;
    const grown = children.map(grow);
    if (!TAGS.has(tag)) return make("span", {}, ...grown);
    if (tag === "a") return link(attributes.href, ...grown);
    if (tag === "table") return make("div", { class: "wide", tabindex: "0", role: "group" }, make("table", {}, ...grown));
    return make(tag, { start: attributes.start, tabindex: tag === "pre" ? "0" : undefined }, ...grown);
  }

  // Pages of this site open in this tab, where the conversation is found again; others in a new one.
  function link(address, ...children) {
    if (!/^(https?:\/\/|mailto:|tel:)/i.test(address || "")) return make("span", {}, ...children);
    const isOwn = !address.startsWith("http") || address.startsWith(`${location.origin}/`);
    return make("a", { href: address, rel: "noopener", target: isOwn ? undefined : "_blank" }, ...children);
  }

  // While an answer arrives it is shown as plain text without its marks; when it is whole the server renders it.
  function withoutMarks(text) {
    return text
      .replace(/^[ |:-]*\|[ |:-]*$\n?/gm, "")
      .replace(/^\|(.*)\|\s*$/gm, (_, cells) => cells.trim().split(/\s*\|\s*/).join(" · "))
      .replace(/!?\[([^\]]*)\]\([^)\s]*\)?/g, "$1")
      .replace(/^\s{0,3}(#{1,6}|>)\s+/gm, "")
      .replace(/^(\s*)[-*+]\s+/gm, "$1• ")
      .replace(/\*\*|__|`+/g, "");
  }

  // --- Colours ------------------------------------------------------------------------------------
  function readColour(text) {
    const digits = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec((text || "").trim())?.[1];
    if (!digits) return [10, 106, 100];
    const wide = digits.length === 3 ? digits.replace(/./g, "$&$&") : digits;
    return [0, 2, 4].map((start) => parseInt(wide.slice(start, start + 2), 16));
  }

  // Relative luminance and contrast as WCAG 2.2 defines them.
  function luminance(colour) {
    const [red, green, blue] = colour.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }

  function contrast(one, other) {
    const [dark, light] = [luminance(one), luminance(other)].sort((first, second) => first - second);
    return (light + 0.05) / (dark + 0.05);
  }

  // The colour, moved towards black or white until it can be read on the ground.
  function readableOn(ground, colour, isDark) {
    const target = isDark ? 255 : 0;
    let moved = colour;
    for (let step = 0; step <= 20 && contrast(moved, ground) < 4.7; step++) {
      moved = colour.map((part) => Math.round(part + ((target - part) * step) / 20));
    }
    return moved;
  }

  function colourRules() {
    const fill = readColour(options.color);
    const hex = (colour) => `rgb(${colour.join(" ")})`;
    const onFill = contrast(fill, [255, 255, 255]) >= 4.5 ? [255, 255, 255] : [0, 0, 0];
    const rules = `--fill: ${hex(fill)}; --on-fill: ${hex(onFill)};`;
    const light = readableOn([241, 244, 243], fill, false);
    const dark = readableOn([33, 42, 40], fill, true);
    return `.root { ${rules} --link: ${hex(light)}; } .dark { --link: ${hex(dark)}; }`;
  }

  function dress(shadow) {
    const rules = CSS + colourRules();
    try {
      const sheet = new CSSStyleSheet(); // allowed under any style-src, as it is no part of the page
      sheet.replaceSync(rules);
      shadow.adoptedStyleSheets = [sheet];
    } catch {
      shadow.append(make("style", {}, rules)); // browsers from before 2023
    }
  }

  function chooseLanguage() {
    const wanted = [options.language, document.documentElement.lang, ...(navigator.languages || [])];
    for (const each of wanted) {
      const code = (each || "").toLowerCase().split("-")[0].replace(/^(no|nn)$/, "nb");
      if (FIRST_WORDS[code]) return code;
    }
    return "en";
  }

  // --- The server ---------------------------------------------------------------------------------
  class Refusal extends Error {
    constructor(status, answer) {
      super(answer?.error?.message || `status ${status}`);
      Object.assign(this, { status, code: answer?.error?.code || "", words: answer?.words });
    }
  }

  // Sent as text and without headers of its own: that needs no preflight, which on a slow phone is a second saved.
  async function post(what, fields = {}) {
    const body = JSON.stringify({ key, model, language, ...fields });
    const response = await fetch(`${server}/widget/v1/${what}`, { method: "POST", body, credentials: "omit" });
    const answer = await response.json().catch(() => null);
    if (!response.ok) throw new Refusal(response.status, answer);
    return answer;
  }

  async function* streamed(question, signal) {
    const response = await fetch(`${server}/v1/chat/completions`, {
      method: "POST",
      credentials: "omit",
      signal,
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json", ...(await proof(question)) },
      body: JSON.stringify({
        model,
        stream: true,
        metadata: { session_id: session },
        messages: [{ role: "user", content: question }],
      }),
    });
    if (!response.ok) throw new Refusal(response.status, await response.json().catch(() => null));
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new Refusal(0, null); // [DONE] did not come: the connection broke
      rest += decoder.decode(value, { stream: true });
      const lines = rest.split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (line === "data: [DONE]") return;
        if (!line.startsWith("data: ")) continue;
        const event = JSON.parse(line.slice(6));
        if (event.error) throw new Refusal(0, event);
        yield event;
      }
    }
  }

  // Where the chatbot's owner asks for it, each question costs the visitor's device a moment's work.
  async function proof(question) {
    if (!settings.proof_bits) return {};
    if (!crypto.subtle) console.warn("Sitewise: proof of work needs a page that is served over https.");
    const digest = async (text) => new DataView(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
    const asked = await digest(question);
    const [{ challenge }, hex] = [
      await post("challenge"),
      Array.from({ length: 32 }, (_, at) => asked.getUint8(at).toString(16).padStart(2, "0")).join(""),
    ];
    for (let start = 0; ; start += 256) {
      const numbers = Array.from({ length: 256 }, (_, step) => start + step);
      const digests = await Promise.all(numbers.map((number) => digest(`${challenge}:${hex}:${number}`)));
      const found = digests.findIndex((each) => Math.clz32(each.getUint32(0)) >= settings.proof_bits);
      if (found >= 0) return { "X-Sitewise-Proof": `${challenge}:${start + found}` };
    }
  }

  // --- The conversation's id ----------------------------------------------------------------------
  let session = "";
  try {
    session = sessionStorage.getItem(storageKey) || "";
  } catch {
    // Storage may be forbidden; the conversation then lasts until the next page.
  }

  function beginSession() {
    if (session) return;
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    session = `w-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  }

  function keepSession(isKept) {
    try {
      if (isKept) sessionStorage.setItem(storageKey, session);
      else sessionStorage.removeItem(storageKey);
    } catch {
      // As above.
    }
  }

  // --- What is on the page ------------------------------------------------------------------------
  let settings = null; // of the chatbot, once the server has told them
  let words = {};
  let configuring = null;
  let running = null; // the AbortController of the answer that is arriving
  let host, root, panel, launch, log, form, field, send, foot, heading, status;

  function build() {
    host = make("sitewise-chat", { "data-model": model });
    const shadow = host.attachShadow({ mode: "open" });
    dress(shadow);
    root = make("div", { class: `root ${mode}${isOnTheLeft ? " left" : ""}`, dir: isRightToLeft ? "rtl" : "ltr", lang: language });
    status = make("p", { class: "unseen", role: "status" });
    log = make("div", { class: "log", tabindex: "0", role: "region", "aria-label": ASK_WORDS });
    field = make("textarea", { rows: "1", "aria-label": ASK_WORDS, placeholder: options.placeholder || ASK_WORDS, enterkeyhint: "send" });
    field.addEventListener("input", fitField);
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      submit(event);
    });
    send = make("button", { type: "submit", class: "send", "aria-label": ASK_WORDS }, icon("send"));
    form = make("form", { class: "ask", onsubmit: submit }, field, send);
    foot = make("p", { class: "foot", hidden: true });
    if (mode === "bubble") buildBubble();
    else buildBox();
    shadow.append(root);
    followTheme();
    place();
  }

  function buildBubble() {
    heading = make("h2", { tabindex: "-1", id: "title" }, TITLE);
    launch = make("button", { type: "button", class: "launch", "aria-label": options.title || OPEN_WORDS, title: OPEN_WORDS, "aria-haspopup": "dialog", onclick: open }, icon("chat"));
    panel = make("dialog", { class: "panel", "aria-labelledby": "title" }, header(), log, form, foot, status);
    panel.addEventListener("cancel", (event) => {
      event.preventDefault();
      close();
    });
    panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.preventDefault();
      event.stopPropagation();
      close();
    });
    root.append(launch, panel);
  }

  function header() {
    return make("div", { class: "head" }, heading,
      iconButton("again", "", clear, { class: "icon again", hidden: true }),
      iconButton("close", "", close, { class: "icon shut" }));
  }

  function buildBox() {
    const isSearch = mode === "search";
    heading = make("h2", {}, TITLE);
    panel = make("section", { class: "panel", "aria-label": TITLE });
    if (isSearch) {
      log.hidden = true;
      form.setAttribute("role", "search");
      panel.append(form, log, foot, status);
      field.addEventListener("focus", configure, { once: true });
    } else {
      const head = header();
      head.querySelector(".shut").remove();
      panel.append(head, log, form, foot, status);
      new IntersectionObserver((seen, observer) => {
        if (!seen.some((each) => each.isIntersecting)) return;
        observer.disconnect();
        configure();
      }).observe(panel);
    }
    root.append(panel);
  }

  function place() {
    const target = options.target && document.querySelector(options.target);
    if (target) target.append(host);
    else if (mode !== "bubble" && script.parentNode && script.closest("body")) script.after(host);
    else document.body.append(host);
  }

  function followTheme() {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const apply = () => root.classList.toggle("dark", options.theme ? options.theme === "dark" : query.matches);
    query.addEventListener("change", apply);
    apply();
  }

  function open() {
    if (panel.open) return;
    const isSmall = matchMedia("(max-width: 480px), (max-height: 420px)").matches;
    launch.hidden = true;
    if (isSmall) panel.showModal();
    else panel.show();
    focusFirst();
    configure();
  }

  // On a touch screen the keyboard would cover what there is to read first.
  function focusFirst() {
    if (!form.hidden && matchMedia("(pointer: fine)").matches) field.focus();
    else heading.focus();
  }

  function close() {
    if (mode !== "bubble" || !panel.open) return;
    panel.close();
    launch.hidden = false;
    launch.focus();
  }

  // --- Beginning ----------------------------------------------------------------------------------
  function configure() {
    configuring ||= (async () => {
      log.replaceChildren(dots());
      try {
        settings = await post("config", { session });
        panel.classList.remove("short");
        words = settings.words;
        nameParts();
        begin();
        return true;
      } catch (error) {
        showClosed(error);
        configuring = null;
        return false;
      }
    })();
    return configuring;
  }

  function nameParts() {
    log.setAttribute("aria-label", words.conversation);
    send.setAttribute("aria-label", words.send);
    foot.textContent = words.note;
    foot.hidden = mode === "search";
    for (const [part, label] of [[".again", words.clear], [".shut", words.close]]) {
      const button = panel.querySelector(part);
      button?.setAttribute("aria-label", label);
      button?.setAttribute("title", label);
    }
    heading.textContent = options.title || words.title;
  }

  function showClosed(error) {
    const isRefused = error.status === 401 || error.status === 403 || error.status === 404;
    if (isRefused) console.warn(`Sitewise: the chat "${model}" does not open on ${location.origin}. ${error.message}`);
    log.hidden = false;
    form.hidden = isRefused;
    const text = error.words || AWAY_WORDS;
    const retry = isRefused ? "" : make("button", { type: "button", class: "line", "aria-label": OPEN_WORDS, onclick: configure }, icon("again"));
    panel.classList.add("short");
    log.replaceChildren(make("div", { class: "quiet" }, icon("closed"), make("p", {}, text), retry));
    say(text);
    if (isRefused && mode === "bubble") heading.focus();
  }

  function begin() {
    const isNew = !settings.earlier.length;
    const asksFirst = isNew && settings.questionnaire.length > 0 && mode !== "search";
    form.hidden = asksFirst;
    panel.querySelector(".again")?.toggleAttribute("hidden", isNew);
    log.hidden = mode === "search" && isNew;
    log.replaceChildren();
    if (settings.greeting) log.append(make("div", { class: "words" }, make("p", { dir: "auto" }, settings.greeting)));
    for (const [question, tree] of settings.earlier) {
      const turn = addTurn(question);
      turn.words.replaceChildren(...tree.map(grow));
    }
    if (asksFirst) log.append(questionnaire());
    else if (isNew) log.append(starters());
    log.scrollTop = isNew ? 0 : log.scrollHeight;
    if (mode === "bubble") focusFirst();
  }

  function starters() {
    const buttons = settings.starters.map((text) => make("li", {}, make("button", { type: "button", dir: "auto", onclick: () => ask(text) }, text)));
    return buttons.length ? make("ul", { class: "starters", role: "list" }, ...buttons) : "";
  }

  function questionnaire() {
    const parts = settings.questionnaire.map(({ question, choices }, number) => {
      const name = `q${number}`;
      if (!choices.length) {
        const input = make("input", { id: name, name, maxlength: "500", dir: "auto", autocomplete: "off" });
        return make("div", { class: "field" }, make("label", { class: "name", for: name, dir: "auto" }, question), input);
      }
      const picks = choices.map((choice) =>
        make("label", { class: "pick", dir: "auto" }, make("input", { type: "radio", name, value: choice }), choice));
      return make("fieldset", {}, make("legend", { dir: "auto" }, question), ...picks);
    });
    const skip = make("button", { type: "button", class: "line", onclick: () => leave() }, words.skip);
    const card = make("form", { class: "card", novalidate: true, onsubmit: finish }, ...parts,
      make("div", { class: "row" }, make("button", { type: "submit", class: "solid" }, words.begin), skip));

    function leave() {
      card.remove();
      form.hidden = false;
      log.append(starters());
      focusFirst();
    }

    async function finish(event) {
      event.preventDefault();
      const given = new FormData(card);
      const answers = settings.questionnaire.map((_, number) => String(given.get(`q${number}`) || "").trim());
      beginSession();
      try {
        if (answers.some(Boolean)) await post("questionnaire", { session, answers });
        leave();
      } catch (error) {
        card.querySelector(".wrong")?.remove();
        card.append(make("p", { class: "wrong", role: "alert" }, reasonOf(error)));
      }
    }
    return card;
  }

  // --- Asking -------------------------------------------------------------------------------------
  async function submit(event) {
    event.preventDefault();
    if (running) return void running.abort();
    const question = field.value.trim();
    if (!question || !(await configure()) || form.hidden) return;
    field.value = "";
    fitField();
    ask(question);
  }

  function fitField() {
    field.dir = field.value ? "auto" : ""; // a placeholder follows the widget's direction
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight + 2, 140)}px`;
  }

  function addTurn(question) {
    const turn = { question, text: "", id: "", words: make("div", { class: "words plain", dir: "auto" }, dots()) };
    turn.answer = make("div", { class: "turn" }, turn.words);
    turn.element = make("article", { class: "turn" },
      make("p", { class: "asked", dir: "auto" }, make("span", { class: "unseen" }, `${words.you}: `), question), turn.answer);
    turn.words.classList.remove("plain");
    log.append(turn.element);
    return turn;
  }

  async function ask(question) {
    if (running) return;
    beginSession();
    keepSession(true);
    if (mode === "search") log.replaceChildren();
    log.hidden = false;
    log.querySelector(".starters")?.remove();
    panel.querySelector(".again")?.removeAttribute("hidden");
    if (!host.shadowRoot.activeElement) focusFirst(); // a starter that was pressed is gone
    const turn = addTurn(question);
    await answer(turn);
  }

  async function answer(turn) {
    running = new AbortController();
    setSend("stop", words.stop);
    say(words.waiting);
    turn.answer.replaceChildren(turn.words);
    turn.words.replaceChildren(dots());
    turn.text = "";
    follow(turn);
    let ending = null;
    try {
      for await (const event of streamed(turn.question, running.signal)) {
        const choice = event.choices[0];
        if (event.sources) ending = event;
        if (choice?.delta.content) showPiece(turn, choice.delta.content);
      }
      await finish(turn, ending || {});
    } catch (error) {
      const isStopped = running.signal.aborted;
      await render(turn);
      if (!isStopped) fail(turn, error);
      else turn.answer.append(make("p", { class: "note" }, words.stopped));
      say(isStopped ? words.stopped : reasonOf(error));
    }
    running = null;
    setSend("send", words.send);
    follow(turn);
  }

  function showPiece(turn, piece) {
    turn.text += piece;
    turn.words.classList.add("plain");
    turn.words.textContent = withoutMarks(turn.text);
    follow(turn);
  }

  // The text comes into view line by line until the question has reached the top; from there the reader scrolls.
  function follow(turn) {
    log.scrollTop = Math.min(log.scrollHeight, turn.element.offsetTop - 12);
  }

  async function finish(turn, ending) {
    turn.id = (settings.takes_ratings && ending.id?.split("-")[1]) || "";
    await render(turn);
    const isQuoted = ending.answered_by === "extract"; // quoted passages name their pages themselves
    const sources = isQuoted ? [] : (ending.sources || []).filter((source) => source.url || source.title);
    if (sources.length) turn.answer.append(sourceList(sources));
    turn.answer.append(tools(turn));
    if (settings.takes_emails && (ending.unanswered || ending.offers_contact)) turn.answer.append(emailForm(turn));
    say(`${words.answer}: ${turn.words.textContent}`);
  }

  async function render(turn) {
    if (!turn.text.trim()) return turn.words.replaceChildren();
    try {
      const { tree } = await post("rendered", { text: turn.text });
      turn.words.classList.remove("plain");
      turn.words.replaceChildren(...tree.map(grow));
    } catch {
      // The plain text stays, and can be read.
    }
  }

  function sourceList(sources) {
    const entries = sources.map(({ title, url }) => {
      const host = url ? new URL(url).hostname.replace(/^www\./, "") : "";
      return make("li", {}, url ? link(url, title || url) : make("span", { dir: "auto" }, title), host ? make("small", { dir: "ltr" }, host) : "");
    });
    return make("div", { class: "sources" }, make("b", {}, words.sources), make("ol", { role: "list" }, ...entries));
  }

  function tools(turn) {
    const row = make("div", { class: "tools" }, iconButton("copy", words.copy, (event) => copy(turn, event.currentTarget)));
    if (!turn.id) return row;
    const thumbs = [["up", words.helpful, 1], ["down", words.unhelpful, -1]].map(([name, label, rating]) =>
      iconButton(name, label, (event) => rate(turn, rating, event.currentTarget), { "aria-pressed": "false" }));
    row.append(...thumbs);
    return row;
  }

  async function copy(turn, button) {
    const text = turn.words.innerText;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const range = document.createRange(); // browsers copy by script on secure pages only
      range.selectNodeContents(turn.words);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      if (!document.execCommand("copy")) return;
    }
    button.replaceChildren(icon("done"));
    say(words.copied);
    setTimeout(() => button.replaceChildren(icon("copy")), 2000);
  }

  async function rate(turn, rating, button) {
    const isTakenBack = button.getAttribute("aria-pressed") === "true";
    for (const each of turn.answer.querySelectorAll(".tools [aria-pressed]")) {
      each.setAttribute("aria-pressed", String(each === button && !isTakenBack));
    }
    turn.answer.querySelector(".why")?.remove();
    const isDown = rating < 0 && !isTakenBack;
    if (isDown) turn.answer.append(whyForm(turn));
    if (isDown && settings.takes_emails && !turn.answer.querySelector(".email")) turn.answer.append(emailForm(turn));
    post("feedback", { turn: turn.id, rating: isTakenBack ? 0 : rating }).catch(() => {});
    if (!isDown) say(words.thanks);
  }

  function whyForm(turn) {
    const chips = [words.wrong, words.incomplete, words.outdated].map((text) =>
      make("button", { type: "button", class: "chip", "aria-pressed": "false", onclick: press }, text));
    const own = make("input", { "aria-label": words.more, placeholder: words.more, maxlength: "200", dir: "auto" });
    const why = make("form", { class: "card why", onsubmit: tell }, make("b", {}, words.why), make("div", { class: "row" }, ...chips),
      make("div", { class: "row" }, own, make("button", { type: "submit", class: "solid" }, words.send)));

    function press(event) {
      const chip = event.currentTarget;
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
    }

    async function tell(event) {
      event.preventDefault();
      const pressed = chips.filter((chip) => chip.getAttribute("aria-pressed") === "true").map((chip) => chip.textContent);
      const reason = [...pressed, own.value.trim()].filter(Boolean).join("; ");
      await sendOrSay(why, "feedback", { turn: turn.id, rating: -1, reason });
    }
    return why;
  }

  function emailForm(turn) {
    const id = `email-${Math.random().toString(36).slice(2)}`;
    const input = make("input", { id, type: "email", required: true, maxlength: "254", autocomplete: "email", dir: "ltr" });
    const card = make("form", { class: "card email", novalidate: true, onsubmit: leave }, make("p", {}, words.leave),
      make("div", { class: "field" }, make("label", { class: "name", for: id }, words.email),
        make("div", { class: "row" }, input, make("button", { type: "submit", class: "solid" }, words.send))));

    async function leave(event) {
      event.preventDefault();
      input.setAttribute("aria-invalid", String(!input.checkValidity()));
      if (!input.checkValidity()) return warn(card, words.bad_email, input);
      await sendOrSay(card, "lead", { email: input.value, session, turn: turn.id || undefined });
    }
    return card;
  }

  // A small form gives way to thanks, or says what is wrong and keeps what was typed.
  async function sendOrSay(card, what, fields) {
    try {
      await post(what, fields);
      card.replaceWith(make("p", { class: "note" }, words.thanks));
      say(words.thanks);
      field.focus();
    } catch (error) {
      warn(card, reasonOf(error));
    }
  }

  function warn(card, text, input) {
    card.querySelector(".wrong")?.remove();
    card.append(make("p", { class: "wrong", role: "alert" }, text));
    input?.focus();
  }

  function fail(turn, error) {
    if (error.status === 403) console.warn(`Sitewise: ${error.message}`);
    const retry = make("button", { type: "button", class: "line", onclick: () => !running && answer(turn) }, words.retry);
    turn.answer.append(make("div", { class: "card", role: "group" }, make("p", {}, reasonOf(error)), make("div", { class: "row" }, retry)));
    if (settings.takes_emails && error.code !== "context_length_exceeded") turn.answer.append(emailForm(turn));
  }

  function reasonOf(error) {
    if (error.code === "context_length_exceeded") return words.long;
    if (error.status === 429) return words.busy;
    if (/^(llm|embedding|workspace)_unavailable$|^timeout$/.test(error.code)) return words.away;
    return words.failed;
  }

  function clear() {
    running?.abort();
    keepSession(false);
    session = "";
    settings.earlier = [];
    begin();
    say(words.clear);
  }

  function setSend(name, label) {
    send.replaceChildren(icon(name));
    send.setAttribute("aria-label", label);
  }

  function dots() {
    return make("span", { class: "wait" }, make("i"), make("i"), make("i"));
  }

  function say(text) {
    status.textContent = text;
  }

  // --- Start --------------------------------------------------------------------------------------
  function start() {
    const isThere = [...document.querySelectorAll("sitewise-chat")].some((each) => each.dataset.model === model);
    if (mode === "bubble" && isThere) return; // a page that swaps its parts may bring the tag twice
    build();
  }

  if (document.body && (mode === "bubble" || script.closest("body"))) start();
  else document.addEventListener("DOMContentLoaded", start);
})();
