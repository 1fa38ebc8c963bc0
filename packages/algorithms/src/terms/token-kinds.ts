/**
 * Kinds of the tokens in a loss: those that the policy sampled, those that it observed (text of tools' answers), and
 * those that a demonstration shows it. Each token has one kind.
 */
export const tokenKinds = ["sampled", "observed", "demonstrated"] as const;

export type TokenKind = (typeof tokenKinds)[number];

/** Column of the kind of each token, as an index of `tokenKinds`. Absent: all were sampled. */
export const TOKEN_KIND = "tokenKind";

/** The value of a kind in the column `TOKEN_KIND`. */
export const codeOf = (kind: TokenKind): number => tokenKinds.indexOf(kind);
