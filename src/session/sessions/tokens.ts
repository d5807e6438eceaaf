import type { Sealer } from '../../store/index.ts'

/** The tokens of a session. They leave this server only towards the FHIR server and the auth server. */
export interface Tokens {
  readonly accessToken: string
  readonly refreshToken?: string
}

const PURPOSE = 'app session tokens'

export function sealTokens(sealer: Sealer, tokens: Tokens): string {
  return sealer.seal(JSON.stringify(tokens), PURPOSE)
}

/** Undefined when they were sealed with another `SMART_SECRET`, or changed: such a session is over. */
export function openTokens(sealer: Sealer, sealed: string): Tokens | undefined {
  try {
    return JSON.parse(sealer.open(sealed, PURPOSE)) as Tokens
  } catch {
    return undefined
  }
}
