export { FakeEngine } from "./fake-engine.js";
export { fakeImageFile } from "./fake-image-file.js";
export { type FakeImageOptions, FakeImages, fakeImageMarks } from "./fake-images.js";
export type { FakeContext, FakeEngineOptions, FakeReply } from "./fake-script.js";
export { FakeSequence } from "./fake-sequence.js";
export { FakeTokenizer, fakeChatTemplate, fakeSpecialTokens } from "./fake-tokenizer.js";
export { FakeValueEngine } from "./fake-value-engine.js";
export { amount, isNightly, someOf } from "./nightly.js";
export { readPng } from "./read-png.js";
