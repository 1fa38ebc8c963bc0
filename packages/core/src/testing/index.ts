export { type FakeContext, FakeEngine, type FakeEngineOptions, type FakeReply } from "./fake-engine.js";
export { FakeSequence } from "./fake-sequence.js";
export { FakeTokenizer, fakeChatTemplate, fakeSpecialTokens } from "./fake-tokenizer.js";
export { FakeValueEngine } from "./fake-value-engine.js";
