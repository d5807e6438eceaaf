import type { Sealer } from '../../store/index.ts'

export interface Tokens {
  readonly accessToken: string
  readonly refreshToken?: string
}

const toSealedCell = (idHash: string) =>
  ({ table: 'app_session', column: 'tokens_sealed', row: idHash }) as const

export function sealTokens(sealer: Sealer, idHash: string, tokens: Tokens): string {
  return sealer.seal(JSON.stringify(tokens), toSealedCell(idHash))
}

/**
 * Undefined if they were sealed with another `SMART_SECRET` or for another session, or were changed: the session is
 * over.
 */
export function openTokens(
  sealer: Sealer,
  { idHash, tokensSealed }: { readonly idHash: string; readonly tokensSealed: string },
): Tokens | undefined {
  const text = sealer.tryOpen(tokensSealed, toSealedCell(idHash))
  return text === undefined ? undefined : (JSON.parse(text) as Tokens)
}
