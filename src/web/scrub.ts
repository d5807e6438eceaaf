const SECRETS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\beyJ[\w-]+\.[\w-]*\.?[\w-]*/g, '[token]'],
  [/\b(bearer|basic)\s+[\w.~+/=-]+/gi, '$1 [secret]'],
  [/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]+@/gi, '$1[secret]@'],
  [
    /\b(launch|code|state|nonce|token|access_token|refresh_token|id_token|id_token_hint|client_secret|client_assertion|code_verifier|password|secret)=[^&\s"']+/gi,
    '$1=[secret]',
  ],
  [/(?<![\w/.-])[\w-]{43,}(?![\w/-]|\.\w)/g, '[secret]'],
]

/** Takes out of a message what looks like a token, a code or a password. The last net: nothing should put one in. */
export function scrub(text: string): string {
  return SECRETS.reduce((rest, [pattern, instead]) => rest.replace(pattern, instead), text)
}
