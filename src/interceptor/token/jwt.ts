/** A JWT taken apart. Nothing in it is to be believed before its signature is verified. */
export interface Jwt {
  readonly header: Readonly<Record<string, unknown>>
  readonly claims: Readonly<Record<string, unknown>>
  /** What is signed. */
  readonly input: Buffer
  readonly signature: Buffer
}

// Three base64url parts (RFC 7515, 7.1).
const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/

/** Takes a compact JWS apart (RFC 7515, 7.1), or undefined when it is none. */
export function readJwt(token: string): Jwt | undefined {
  if (!COMPACT.test(token)) return undefined
  const [head = '', body = '', signature = ''] = token.split('.')
  const header = readObject(head)
  const claims = readObject(body)
  if (!header || !claims) return undefined
  return {
    header,
    claims,
    input: Buffer.from(token.slice(0, head.length + 1 + body.length), 'latin1'),
    signature: Buffer.from(signature, 'base64url'),
  }
}

function readObject(part: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(utf8.decode(Buffer.from(part, 'base64url')))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
