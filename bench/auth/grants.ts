/** The token requests that are measured. */
export const GRANTS = ['code', 'refresh', 'client_credentials RS384', 'client_credentials ES384'] as const

export type Grant = (typeof GRANTS)[number]

/** A server in a process of its own. */
export interface TokenServer {
  readonly port: number
  readonly host: string
  readonly path: string
  /** Makes bodies of valid token requests, each for one use. */
  makeForms(grant: Grant, count: number): Promise<readonly Form[]>
}

export type Form = Readonly<Record<string, string>>
