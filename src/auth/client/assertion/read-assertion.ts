import { LIMITS } from '../../limits.ts'
/** A client's assertion taken apart (RFC 7523). Nothing in it is to be believed before its signature is verified. */
export interface Assertion {
  readonly header: Readonly<Record<string, unknown>>
  readonly claims: Readonly<Record<string, unknown>>
  /** What is signed. */
  readonly input: Buffer
  readonly signature: Buffer
}

const COMPACT = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/

export function readAssertion(text: string): Assertion | undefined {
  const [, head, body, signature] = (text.length <= LIMITS.assertionCharacters && COMPACT.exec(text)) || []
  if (head === undefined || body === undefined || signature === undefined) return undefined
  const header = readObject(head)
  const claims = readObject(body)
  return (
    header &&
    claims && {
      header,
      claims,
      input: Buffer.from(`${head}.${body}`),
      signature: Buffer.from(signature, 'base64url'),
    }
  )
}

function readObject(part: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined
  }
}
