import {
  fail,
  formatExact,
  isId,
  isProblem,
  isRecord,
  isResource,
  listCompartmentParameters,
  type Params,
  parseExact,
  parseReference,
  type Resource,
  resourceTypes,
} from '../../fhir/index.ts'
import {
  addPostedParams,
  bundleJson,
  entryJson,
  type FhirResponse,
  findResource,
  getPath,
  isFailure,
  type Operation,
  respondWithPage,
  resumePage,
} from '../../fhir-api/index.ts'
import { checkContent, createLookup } from './access.ts'
import type { Call, Context } from './context.ts'
import { buildGet, buildQuery } from './http/build-request.ts'
import { toFailure } from './http/failure.ts'
import { parseResource } from './http/parse-resource.ts'
import { expandPanels } from './membership/expand-panels.ts'
import type { Problem } from './problem.ts'
import { fetchRecord, VISIBLE } from './search/find-everything.ts'
import { parseCursor } from './search/page-links.ts'

const SHAPES: ReadonlySet<string> = new Set(['_format', '_pretty'])

/** `Patient/[id]/$summary` and `Composition/[id]/$document`: a document, every resource of it judged by its content. */
export function documentOf(type: 'Patient' | 'Composition') {
  return async (context: Context, begun: Call<Operation>): Promise<FhirResponse | Problem> => {
    const call = addPostedParams(begun)
    if (isProblem(call)) return call
    const { id = '', name } = call.interaction
    const found = await findResource(createLookup(context, call), call, 'r', type, id)
    if (isProblem(found)) return found
    if (found.deleted) return fail({ problem: 'gone', type, id })
    const params = call.interaction.params.filter(([it]) => !SHAPES.has(it))
    // `persist=true` would store the document.
    const unknown = params.find(([it, value]) => it !== 'profile' && !(it === 'persist' && value === 'false'))
    if (unknown) return unsupported(unknown[0], name)
    const query = buildQuery(params, context.addresses)
    const path = getPath(call.interaction)
    return fetchDocument(context, call, query === '' ? path : `${path}?${query}`)
  }
}

async function fetchDocument(
  context: Context,
  call: Call<Operation>,
  path: string,
): Promise<FhirResponse | Problem> {
  const answer = await context.upstream.ask(buildGet(call, path))
  if (isProblem(answer)) return answer
  if (answer.status !== 200) return toFailure(answer, call.access)
  const bundle = parseResource(answer)
  if (isProblem(bundle)) return bundle
  const entries = entriesIn(bundle)
  const exact = entriesIn(parseExact(answer.text))
  if (!entries || !exact) return fail({ problem: 'upstream-broken', why: 'its document is not a Bundle' })
  const resources = entries.flatMap(({ resource }) => (isResource(resource) ? [resource] : []))
  const judge = await checkContent(context, call, resources)
  if (isProblem(judge)) return judge
  const mayNarrate = call.interaction.name !== '$summary' || readsRecord(call)
  const shown = entries.flatMap(({ resource, fullUrl }, at) => {
    const twin = exact[at]?.resource
    if (!isResource(resource) || !isResource(twin) || !VISIBLE.isMatch(resource, judge)) return []
    if (resource.resourceType === 'Composition' && !mayNarrate) return []
    return [
      { type: resource.resourceType, fullUrl: findUrl(context, fullUrl, resource), text: formatExact(twin) },
    ]
  })
  const isDocument = shown[0]?.type === 'Composition'
  const documentEntries = shown.map(({ fullUrl, text }) => entryJson({ fullUrl, resource: text }))
  return { status: 200, body: bundleJson({ ...partsOf(bundle, isDocument), entries: documentEntries }) }
}

/** A document has an identifier and a time (R4 bundle.html, bdl-9 and bdl-10), and begins with its Composition (bdl-11). */
function partsOf({ identifier, timestamp }: Resource, isDocument: boolean) {
  return {
    type: isDocument ? ('document' as const) : ('collection' as const),
    ...(isDocument && isRecord(identifier) && { identifier }),
    ...(isDocument && typeof timestamp === 'string' && { timestamp }),
  }
}

/** References within a document may be to addresses that only it has (`urn:uuid:…`). */
function findUrl({ baseUrl }: Context, fullUrl: unknown, { resourceType, id }: Resource): string {
  const isOwn =
    typeof fullUrl === 'string' && (fullUrl.startsWith('urn:') || fullUrl.startsWith(`${baseUrl}/`))
  return isOwn ? fullUrl : `${baseUrl}/${resourceType}/${id}`
}

interface Entry {
  readonly fullUrl?: unknown
  readonly resource?: unknown
}

function entriesIn(bundle: unknown): readonly Entry[] | undefined {
  const { resourceType, entry = [] } = isRecord(bundle) ? bundle : {}
  return resourceType === 'Bundle' && Array.isArray(entry) && entry.every(isRecord) ? entry : undefined
}

/**
 * Whether a caller reads all types of a patient's record, without a filter. The Composition of `$summary` is made of
 * them all, and tells of them in its text.
 */
function readsRecord({ access }: Call): boolean {
  return resourceTypes.every(type => {
    const filter = listCompartmentParameters(type).length === 0 ? 'everything' : access.filterFor(type, 'r')
    return filter === 'everything' || filter.some(limit => !limit.query && limit.id === undefined)
  })
}

// US Core DocumentReference-docref.
const DOCREF: ReadonlySet<string> = new Set(['patient', 'start', 'end', 'type', 'on-demand', 'profile'])

/** `DocumentReference/$docref`, for a patient whose documents the caller may search. */
export async function docref(context: Context, begun: Call<Operation>): Promise<FhirResponse | Problem> {
  const asked = addPostedParams(begun)
  if (isProblem(asked)) return asked
  const path = getPath(asked.interaction)
  const resumed = resumePage(context, asked, path)
  if (isFailure(resumed)) return resumed
  const { request: call, cursor } = resumed
  const sent = call.interaction.params.filter(([name]) => !SHAPES.has(name))
  const unknown = sent.find(([name]) => !DOCREF.has(name))
  if (unknown) return unsupported(unknown[0], '$docref')
  const patient = patientIn(sent, context.baseUrl)
  if (patient === undefined)
    return fail({ problem: 'bad-search', code: 'invalid', text: 'Cannot read patient: expected one id' })
  if (!(await mayHaveDocuments(context, call, patient))) return fail({ problem: 'outside-access' })
  const page = await fetchRecord(context, call, parseCursor(cursor), { count: PAGE_SIZE, sent })
  return isProblem(page) ? page : respondWithPage(context, call, path, page)
}

const PAGE_SIZE = 50

function patientIn(params: Params, baseUrl: string): string | undefined {
  const [value, another] = params.filter(([name]) => name === 'patient').map(([, text]) => text)
  if (value === undefined || another !== undefined) return undefined
  const reference = parseReference(value, baseUrl)
  return reference?.type === 'Patient' ? reference.id : isId(value) ? value : undefined
}

async function mayHaveDocuments(context: Context, call: Call, patient: string): Promise<boolean> {
  const filter = call.access.filterFor('DocumentReference', 's')
  const spelled = await expandPanels(context, call, 'DocumentReference', filter, [patient])
  return (
    spelled === 'everything' ||
    spelled.some(limit => limit.patient === patient || (limit.patient === undefined && !limit.panel))
  )
}

function unsupported(parameter: string, name: string): Problem {
  return fail({ problem: 'bad-search', code: 'not-supported', text: `Cannot use ${parameter} with ${name}` })
}
