import type { Readable } from 'node:stream'
import { isProblem, type Resource } from '../../../fhir/index.ts'
import { seesAll } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../context.ts'
import type { UpstreamResponse } from '../http/client.ts'
import { pipe } from '../http/decode.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { parseResource } from '../http/parse-resource.ts'
import { explainPageFailure, type Problem } from '../problem.ts'
import { createLinkSealer } from './seal-links.ts'

/** What the upstream answered when it was asked for a page. */
export type PageResponse =
  | { readonly kind: 'page'; readonly bundle: Resource; readonly text: string }
  /** It has one resource, which is too large to be judged, so that nobody knows who may see it. Its links remain. */
  | { readonly kind: 'unjudged'; readonly bundle: Resource }
  /** Any other status than 200. */
  | { readonly kind: 'declined'; readonly answer: UpstreamResponse }

/** How many resources a page is taken to have that was asked for without `_count`. */
const USUAL_COUNT = 100

/**
 * Asks for a page. Where it is too large to be looked into, a smaller one is asked for, down to one resource; each a
 * quarter of the one before, since the upstream makes each of them.
 */
export async function requestPage(
  context: Context,
  call: Call,
  first: UpstreamRequest,
): Promise<PageResponse | Problem> {
  let request = first
  for (;;) {
    const answer = await context.upstream.ask(request)
    if (!isProblem(answer) && answer.status !== 200) return { kind: 'declined', answer }
    const read = isProblem(answer) ? answer : readPage(answer)
    if (!isProblem(read) || read.problem !== 'upstream-broken' || read.excess === undefined) return read
    const count = countIn(request) ?? USUAL_COUNT
    if (count <= 1) return isLimited(call) ? skipResource(context, request, read) : explainPageFailure(read)
    request = withCount(request, Math.max(1, Math.floor(count / 4)))
  }
}

/** Whether there may be something on the page that the caller must not see. */
function isLimited({ interaction, access }: Call): boolean {
  switch (interaction.kind) {
    case 'search-type':
    case 'search-compartment':
    case 'history-type':
    case 'history-instance':
      return access.filterFor(interaction.type, 's') !== 'everything'
    default:
      return !seesAll(access)
  }
}

function readPage(answer: UpstreamResponse): PageResponse | Problem {
  const bundle = parseResource(answer)
  return isProblem(bundle) ? bundle : { kind: 'page', bundle, text: answer.text }
}

/**
 * Passes over a page of one resource, which a limited caller is not shown. A page with more than that, of an upstream
 * that does not heed `_count`, remains a problem: what the caller may see would be left out too.
 */
async function skipResource(
  context: Context,
  request: UpstreamRequest,
  tooLarge: Problem,
): Promise<PageResponse | Problem> {
  const answer = await context.upstream.pass(request)
  if (isProblem(answer)) return answer
  const link: object[] = []
  const links = createLinkSealer((relation, url) => {
    link.push({ relation, url })
    return url
  })
  const entries = await countEntries(pipe(answer.body, links)).catch(() => 0)
  return entries === 1
    ? { kind: 'unjudged', bundle: { resourceType: 'Bundle', link } }
    : explainPageFailure(tooLarge)
}

const ENTRY = '"fullUrl"'

/** How many entries a Bundle has that is not kept in memory. */
async function countEntries(body: Readable): Promise<number> {
  let count = 0
  let rest = ''
  for await (const chunk of body) {
    const parts = (rest + chunk.toString('latin1')).split(ENTRY)
    count += parts.length - 1
    rest = (parts.at(-1) ?? '').slice(-ENTRY.length)
  }
  return count
}

const COUNT = /(?<=^|[?&])_count=(\d{1,9})(?=&|$)/

function countIn({ path, body }: UpstreamRequest): number | undefined {
  const count = (COUNT.exec(path) ?? COUNT.exec(body ?? ''))?.[1]
  return count === undefined ? undefined : Number(count)
}

function withCount(request: UpstreamRequest, count: number): UpstreamRequest {
  const { path, body } = request
  const asked = `_count=${count}`
  if (COUNT.test(path)) return { ...request, path: path.replace(COUNT, asked) }
  if (body === undefined) return { ...request, path: `${path}${path.includes('?') ? '&' : '?'}${asked}` }
  return { ...request, body: COUNT.test(body) ? body.replace(COUNT, asked) : `${body}&${asked}` }
}
