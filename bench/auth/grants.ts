/** The token requests that are measured. */
export const GRANTS = ['code', 'refresh', 'client_credentials RS384', 'client_credentials ES384'] as const

export type Grant = (typeof GRANTS)[number]

export type Form = Readonly<Record<string, string>>
