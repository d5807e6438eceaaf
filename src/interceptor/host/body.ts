import { findJsonExcess, type Interaction } from '../../fhir/index.ts'

/** The form of a `_search`, from whatever the host's parser made of it. */
export function formText(body: unknown): string | undefined {
  if (typeof body === 'string' || body instanceof Uint8Array) return textOf(body)
  if (typeof body !== 'object' || body === null) return undefined
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(body))
    for (const one of Array.isArray(value) ? value : [value])
      params.append(name, typeof one === 'string' ? one : '\0')
  return params.toString()
}

/** The JSON of a write or a Bundle, parsed by the host or here; undefined where there is none. */
export function jsonOf(interaction: Interaction, body: unknown): unknown {
  if (!isWritten(interaction) || body === undefined || body === null) return undefined
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return body
  try {
    const text = textOf(body)
    return findJsonExcess(text) ? '' : JSON.parse(text)
  } catch {
    // No resource, so it is refused as one that cannot be read.
    return ''
  }
}

function isWritten({ kind }: Interaction): boolean {
  return kind === 'create' || kind === 'bundle' || kind.startsWith('update') || kind.startsWith('patch')
}

function textOf(body: string | Uint8Array): string {
  return typeof body === 'string' ? body : Buffer.from(body).toString('utf8')
}
