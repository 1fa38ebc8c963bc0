export { FakeEngine } from "./fake-engine.js";
export type { FakeContext, FakeEngineOptions, FakeReply } from "./fake-script.js";
export { FakeSequence } from "./fake-sequence.js";
export { FakeTokenizer, fakeChatTemplate, fakeSpecialTokens } from "./fake-tokenizer.js";
export { FakeValueEngine } from "./fake-value-engine.js";
