import type { Grant } from '../../smart/index.ts'

/** The launch that a token follows from: its `jti` is the grant's id, a dot, and a name of its own. */
export function findLaunchId({ tokenId }: Pick<Grant, 'tokenId'>): string | undefined {
  const dot = tokenId?.indexOf('.') ?? -1
  return dot > 0 ? tokenId?.slice(0, dot) : undefined
}
