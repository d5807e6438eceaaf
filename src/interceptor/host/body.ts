import { findJsonExcess, type Interaction } from '../../fhir/index.ts'

/** Reads the form of a `_search`, whatever the host's parser made of it. */
export function readForm(body: unknown): string | undefined {
  if (typeof body === 'string' || body instanceof Uint8Array) return decodeText(body)
  if (typeof body !== 'object' || body === null) return undefined
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(body))
    for (const one of Array.isArray(value) ? value : [value])
      params.append(name, typeof one === 'string' ? one : '\0')
  return params.toString()
}

/** Reads the JSON of a write or a Bundle, which the host may have parsed. Undefined if there is none. */
export function readJson(interaction: Interaction, body: unknown): unknown {
  if (!isWrite(interaction) || body === undefined || body === null) return undefined
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return body
  try {
    const text = decodeText(body)
    return findJsonExcess(text) ? '' : JSON.parse(text)
  } catch {
    // Not a resource, so the content check refuses it.
    return ''
  }
}

function isWrite({ kind }: Interaction): boolean {
  return kind === 'create' || kind === 'bundle' || kind.startsWith('update') || kind.startsWith('patch')
}

function decodeText(body: string | Uint8Array): string {
  return typeof body === 'string' ? body : Buffer.from(body).toString('utf8')
}
