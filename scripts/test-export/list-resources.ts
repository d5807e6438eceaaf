import assert from 'node:assert/strict'

interface Line {
  readonly resourceType: string
  readonly id: string
  readonly meta?: { readonly lastUpdated?: string }
}

/** By `Type/id`. */
export type Resources = ReadonlyMap<string, Line>

/** By `Type/id`; each once. */
function toMap(lines: readonly Line[]): Resources {
  const resources = new Map(lines.map(it => [`${it.resourceType}/${it.id}`, it]))
  assert.equal(resources.size, lines.length)
  return resources
}

/** The resources of NDJSON. URLs below the base, as those of attachments are, become relative. */
export function parseLines(text: string, baseUrl: string): Resources {
  return toMap(
    text
      .replaceAll(`${baseUrl}/`, '')
      .split('\n')
      .filter(Boolean)
      .map((line): Line => JSON.parse(line)),
  )
}

interface Bundle {
  readonly entry?: readonly { readonly resource: Line; readonly search?: { readonly mode: string } }[]
  readonly link?: readonly { readonly relation: string; readonly url: string }[]
}

/** What a FHIR server itself shows, page by page. */
export async function listResources(baseUrl: string, search: string): Promise<Resources> {
  const found: Line[] = []
  let url: string | undefined = `${baseUrl}/${search}${search.includes('?') ? '&' : '?'}_count=500`
  while (url !== undefined) {
    const reply: Response = await fetch(url, {
      headers: { accept: 'application/fhir+json', 'cache-control': 'no-cache' },
    })
    assert.equal(reply.status, 200, url)
    const { entry = [], link = [] } = (await reply.json()) as Bundle
    found.push(...entry.filter(it => it.search?.mode === 'match').map(it => it.resource))
    url = link.find(it => it.relation === 'next')?.url
  }
  return parseLines(found.map(it => JSON.stringify(it)).join('\n'), baseUrl)
}
