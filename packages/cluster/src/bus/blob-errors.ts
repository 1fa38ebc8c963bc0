import { ClusterError } from "@cria/core";

const blobName = (sha: string) => `blob ${sha.slice(0, 12)}`;

export const missingBlob = (sha: string): ClusterError =>
  new ClusterError("does not exist", {
    code: "cluster/blob-missing",
    subject: blobName(sha),
    remedy: "put it again; the bus drops the oldest blobs beyond its bounds",
  });

export const damagedBlob = (sha: string, received: string, cause?: unknown): ClusterError =>
  new ClusterError("is damaged", {
    code: "cluster/blob-damaged",
    subject: blobName(sha),
    expected: `SHA-256 ${sha}`,
    received,
    remedy: "put it again",
    cause,
  });

/** @throws ClusterError "cluster/blob-size". */
export function checkBlobSize(sha: string, size: number, most: number): void {
  if (size <= most) return;
  throw new ClusterError("is too large", {
    code: "cluster/blob-size",
    subject: blobName(sha),
    expected: `at most ${most} bytes`,
    received: `${size} bytes`,
    remedy: "train with LoRA, or create the bus from code with openNatsBus({ bounds: { oneBlobBytes } })",
  });
}
