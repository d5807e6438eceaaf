import type { Resource } from '../../fhir/index.ts'

/** The FHIR server of the portal, with the requests that it received. */
export interface TestFhirServer {
  readonly fetch: typeof globalThis.fetch
  readonly requests: { readonly url: URL; readonly authorization: string | null }[]
  /** Makes it fail from now on: with a status, without a response, or with an invalid one. */
  fail(how: number | 'no-response' | 'not-json' | undefined): void
  /** Makes it respond to this parameter with 400 from now on. */
  refuse(parameter: string | undefined): void
  /** Makes it leave out the links to other pages from now on. */
  refuseLinks(): void
  /** Makes it return up to this number of resources for a search, and say that it did not return all. */
  cut(most: number | undefined): void
}

/** Creates a FHIR server with the interactions that the portal uses: reads, and searches by name, family, given, identifier and patient. */
export function createTestFhirServer(baseUrl: string, resources: readonly Resource[]): TestFhirServer {
  const requests: { url: URL; authorization: string | null }[] = []
  let failing: number | 'no-response' | 'not-json' | undefined
  let refused: string | undefined
  let hasLinks = true
  let most: number | undefined
  return {
    requests,
    refuse: parameter => {
      refused = parameter
    },
    refuseLinks: () => {
      hasLinks = false
    },
    cut: number => {
      most = number
    },
    fail: how => {
      failing = how
    },
    fetch: async (input, init) => {
      const url = new URL(String(input))
      if (url.origin !== new URL(baseUrl).origin) return fetch(input, init)
      requests.push({ url, authorization: new Headers(init?.headers).get('authorization') })
      if (failing === 'no-response') throw new TypeError('fetch failed')
      if (failing === 'not-json') return new Response('<html>', { status: 200 })
      if (failing !== undefined) return Response.json({}, { status: failing })
      if (refused !== undefined && url.searchParams.has(refused)) return Response.json({}, { status: 400 })
      if (most !== undefined && /\/[A-Z]\w+$/.test(url.pathname)) return respondCut(url, resources, most)
      return respond(url, baseUrl, resources, hasLinks)
    },
  }
}

function respond(url: URL, baseUrl: string, resources: readonly Resource[], hasLinks: boolean): Response {
  const [type, id] = url.pathname.slice(new URL(baseUrl).pathname.length + 1).split('/')
  const all = resources.filter(one => one.resourceType === type)
  if (id !== undefined) {
    const one = all.find(resource => resource.id === id)
    return one ? Response.json(one) : Response.json({ resourceType: 'OperationOutcome' }, { status: 404 })
  }
  const matching = all.filter(one => matches(one, url.searchParams))
  const found = sort(matching, url.searchParams.get('_sort'))
  const count = Number(url.searchParams.get('_count') ?? 10)
  const start = Number(url.searchParams.get('_offset') ?? 0)
  const page = found.slice(start, start + count)
  const entry = [...page, ...listIncluded(page, url, resources)].map(resource => ({ resource }))
  const link = hasLinks
    ? [
        ...(start + count < found.length ? [toLink(url, 'next', start + count)] : []),
        ...(start > 0 ? [toLink(url, 'previous', Math.max(0, start - count))] : []),
      ]
    : []
  return Response.json({ resourceType: 'Bundle', type: 'searchset', total: found.length, link, entry })
}

function respondCut(url: URL, resources: readonly Resource[], most: number): Response {
  const type = url.pathname.split('/').at(-1)
  const found = resources.filter(it => it.resourceType === type && matches(it, url.searchParams))
  const issue = [{ severity: 'warning', code: 'incomplete', details: { text: 'Some results are missing' } }]
  const outcome = { resource: { resourceType: 'OperationOutcome', issue }, search: { mode: 'outcome' } }
  const entry = [...found.slice(0, most).map(resource => ({ resource })), outcome]
  return Response.json({ resourceType: 'Bundle', type: 'searchset', entry })
}

/** The resources that the members of `_include` name. */
function listIncluded(page: readonly Resource[], url: URL, all: readonly Resource[]): readonly Resource[] {
  const members = url.searchParams.getAll('_include').map(it => it.split(':')[1] ?? '')
  const named = JSON.stringify(page.map(resource => members.map(member => resource[member])))
  return all.filter(({ resourceType, id }) => named.includes(`"reference":"${resourceType}/${id}"`))
}

function toLink(url: URL, relation: string, offset: number) {
  const other = new URL(url)
  other.searchParams.set('_offset', String(offset))
  return { relation, url: other.href }
}

/** By family name and, if requested, given name; or by the end of the period, as some servers do: without one it is the latest. */
function sort(resources: readonly Resource[], keys: string | null): readonly Resource[] {
  const names = keys?.includes('given') ? ['family', 'given'] : ['family']
  const readKey = (resource: Resource) =>
    readEnd(resource) ?? names.map(name => readName(resource, name)).join(' ')
  return keys === null ? resources : resources.toSorted((a, b) => readKey(a).localeCompare(readKey(b)))
}

function readName({ name }: Resource, part: string): string {
  return (
    new RegExp(`"${part}":\\[?"([^"]*)"`).exec(JSON.stringify(name ?? ''))?.[1]?.toLowerCase() ?? '\u{10ffff}'
  )
}

function readEnd({ period }: Resource): string | undefined {
  if (period === undefined) return undefined
  const [, end = '9999'] = /"end":"([^"]*)"/.exec(JSON.stringify(period)) ?? []
  return String(9_999_999_999_999 - Date.parse(end))
}

function matches(resource: Resource, query: URLSearchParams): boolean {
  const text = JSON.stringify(resource.name ?? '').toLowerCase()
  const names = ['name', 'family', 'given'].flatMap(parameter => query.getAll(parameter))
  const makePatient = query.get('patient')
  // A search by `system|value` is compared by its value.
  const numbers = listValues(query, 'identifier').map(value => value.replace(/^.*[^\\]\|/, ''))
  const parts = listValues(query, 'identifier:contains')
  const births = listValues(query, 'birthdate')
  const recorded = JSON.stringify(resource.identifier ?? '')
  return (
    (query
      .get('_id')
      ?.split(',')
      .includes(resource.id ?? '') ??
      true) &&
    (query.get('status') ?? resource.status) === resource.status &&
    (births.length === 0 || births.some(birth => String(resource.birthDate).startsWith(birth))) &&
    (parts.length === 0 || parts.some(part => recorded.toLowerCase().includes(part.toLowerCase()))) &&
    (numbers.length === 0 || numbers.some(number => recorded.includes(`"${number}"`))) &&
    query
      .getAll('name:contains')
      .every(name => name.split(/(?<!\\),/).some(one => text.includes(one.toLowerCase()))) &&
    names.every(name => name.split(/(?<!\\),/).some(one => text.includes(`"${one.toLowerCase()}`))) &&
    (makePatient === null ||
      JSON.stringify(resource.subject ?? resource.patient).includes(`Patient/${makePatient}"`))
  )
}

function listValues(query: URLSearchParams, parameter: string): readonly string[] {
  return query.get(parameter)?.split(/(?<!\\),/) ?? []
}

export function patient(id: string, family: string, given: string, more: object = {}): Resource {
  return {
    resourceType: 'Patient',
    id,
    name: [{ family, given: [given] }],
    birthDate: '1958-03-14',
    gender: 'female',
    ...more,
  }
}

export function makeEncounter(id: string, patientId: string, status: string, more: object = {}): Resource {
  return {
    resourceType: 'Encounter',
    id,
    status,
    class: { code: 'AMB' },
    type: [{ text: `Visit ${id}` }],
    subject: { reference: `Patient/${patientId}` },
    period: { start: '2026-10-02T09:00:00Z' },
    ...more,
  }
}
