/** All bytes of a body or file. Undefined if there are more than the limit, without reading the rest. */
export async function readWhole(
  source: AsyncIterable<Uint8Array> | null,
  limit: number,
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of source ?? []) {
    length += chunk.length
    if (length > limit) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
