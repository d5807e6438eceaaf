import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { type FhirServerOptions, fhirServer } from '../../../sqlite/index.ts'
import {
  type Behaviour,
  type HapiRequest,
  type HapiResponse,
  type Next,
  refuse,
  respond,
  type StoredServer,
} from './behaviour.ts'
import * as searches from './search-behaviours.ts'
import * as writes from './write-behaviours.ts'

/**
 * The behaviours of HAPI FHIR (JPA starter 8.8.0, default settings) that differ from R4. The first gets a
 * request first and its response last.
 */
const BEHAVIOURS = {
  'other-url': otherUrl,
  'absolute-entry-urls-refused': writes.absoluteEntryUrlsRefused,
  'bundles-create-by-content': writes.bundlesCreateByContent,
  'batches-send-entries': writes.batchesSendEntries,
  'powered-by': poweredBy,
  'error-codes': errorCodes,
  'metadata-refused': metadataRefused,
  'named-software': namedSoftware,
  metadata: largeMetadata,
  'no-compartments': searches.noCompartments,
  'ends-in-silence': searches.endsInSilence,
  'ends-in-time': searches.endsInTime,
  'small-pages': searches.smallPages,
  'pages-by-bytes': searches.pagesByBytes,
  'pages-without-type': searches.pagesWithoutType,
  'no-search-of-all-types': searches.noSearchOfAllTypes,
  'unstable-order': searches.unstableOrder,
  'no-total-of-pages': searches.noTotalOfPages,
  'unstored-has-one-page': searches.unstoredHasOnePage,
  'stale-searches': searches.staleSearches,
  'pages-by-offset': searches.pagesByOffset,
  'search-parameters-take-effect': searches.searchParametersTakeEffect,
  'text-summary-is-html': searches.textSummaryIsHtml,
  'elements-drop-mandatory': searches.elementsDropMandatory,
  'everything-matches': searches.everythingMatches,
  'few-revincludes': searches.fewRevincludes,
  'own-url-finds-nothing': searches.ownUrlFindsNothing,
  'parameters-refused': searches.parametersRefused,
  'date-quirks': searches.dateQuirks,
  'quantity-quirks': searches.quantityQuirks,
  'deletion-has-location': searches.deletionHasLocation,
  'stale-version-count': searches.staleVersionCount,
  'minimal-has-no-type': writes.minimalHasNoType,
  'numeric-ids-refused': writes.numericIdsRefused,
  'absolute-references-refused': writes.absoluteReferencesRefused,
  'dangling-references-refused': writes.danglingReferencesRefused,
  'deletes-in-steps': writes.deletesInSteps,
  'if-match-conflicts': writes.ifMatchConflicts,
  'if-none-match-ignored': writes.ifNoneMatchIgnored,
  'deletes-cascade': writes.deletesCascade,
  'referred-is-kept': writes.referredIsKept,
  'delete-unconditional': writes.deleteUnconditional,
  'unchanged-keeps-version': writes.unchangedKeepsVersion,
  'transactions-answer-relative': writes.transactionsAnswerRelative,
} as const satisfies Readonly<Record<string, Behaviour>>

export type BehaviourName = keyof typeof BEHAVIOURS

/** The behaviours of proxies and of unusual settings, which are off unless a test switches them on. */
const UNUSUAL: readonly BehaviourName[] = [
  'other-url',
  'metadata-refused',
  'ends-in-silence',
  'ends-in-time',
  'small-pages',
  'pages-by-bytes',
]

export interface HapiUpstream {
  readonly url: string
  /** All requests so far, without those for `metadata`. */
  readonly seen: readonly HapiRequest[]
  /** Advances the clock that limits the age of cached results. */
  advance(milliseconds: number): void
  /** Runs before each further request. */
  before(act: ((request: HapiRequest) => Promise<void>) | undefined): void
  /** Runs between the search and the delete of the next conditional delete. */
  betweenSteps(act: () => Promise<unknown>): void
  /** Switches a behaviour on or off. */
  bend(name: BehaviourName, isOn: boolean): void
  /** Accepts requests and carries them out only after `resume`. */
  pause(): void
  resume(): void
  close(): Promise<void>
}

interface HapiOptions {
  readonly off?: readonly BehaviourName[]
  readonly on?: readonly BehaviourName[]
  readonly metadataMs?: number
}

/** The embedded server with all behaviours of HAPI except those in `off`, and the unusual ones in `on`. */
export async function startHapi(options: HapiOptions = {}): Promise<HapiUpstream> {
  const { off = [], on = [], metadataMs = 0 } = options
  const seen: HapiRequest[] = []
  let now = Date.now()
  let held: Promise<void> = Promise.resolve()
  let release = () => {}
  let act: ((request: HapiRequest) => Promise<void>) | undefined
  let step: (() => Promise<unknown>) | undefined
  async function betweenSteps(): Promise<void> {
    const next = step
    step = undefined
    await next?.()
  }
  const isOff = new Set<BehaviourName>([...off, ...UNUSUAL.filter(it => !on.includes(it))])
  let handle: Next = async () => respond(503, {})
  const pending = new Set<Promise<void>>()
  const server = createServer((incoming, outgoing) => {
    const done = answer(incoming, outgoing).finally(() => pending.delete(done))
    pending.add(done)
  })
  async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const request = await readRequest(incoming)
    if (request.path === 'metadata') await sleep(metadataMs)
    else seen.push(request)
    await held
    await act?.(request)
    const { status, headers, body } = await handle(request)
    const isCompressed = /gzip/.test(String(incoming.headers['accept-encoding']))
    outgoing.writeHead(status, {
      ...headers,
      ...(status !== 204 && status !== 304 && describe(isCompressed, body)),
    })
    outgoing.end(incoming.method === 'HEAD' ? undefined : isCompressed ? gzipSync(body, { level: 1 }) : body)
  }
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/fhir`
  const embedded = { baseUrl, dataFile: ':memory:', smartConfiguration: {} }
  const stored = { ...(await openStored(embedded, () => now)), betweenSteps }
  handle = (Object.keys(BEHAVIOURS) as BehaviourName[]).reduceRight<Next>((next, name) => {
    const bend = BEHAVIOURS[name](stored)
    return request => (isOff.has(name) ? next(request) : bend(request, next))
  }, stored.send)
  return {
    url: baseUrl,
    seen,
    advance: milliseconds => {
      now += milliseconds
    },
    before: next => {
      act = next
    },
    betweenSteps: next => {
      step = next
    },
    bend: (name, isOn) => void (isOn ? isOff.delete(name) : isOff.add(name)),
    pause: () => {
      held = new Promise(resolve => {
        release = resolve
      })
    },
    resume: () => release(),
    close: async () => {
      release()
      await Promise.all(pending)
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
      await stored.close()
    },
  }
}

/** HAPI compresses every body, also an empty one. */
function describe(isCompressed: boolean, body: string): Readonly<Record<string, string>> {
  return isCompressed
    ? { 'content-encoding': 'gzip', 'transfer-encoding': 'chunked' }
    : { 'content-length': String(Buffer.byteLength(body)) }
}

async function openStored(
  options: FhirServerOptions,
  clock: () => number,
): Promise<Omit<StoredServer, 'betweenSteps'> & { close(): Promise<void> }> {
  const app = await fhirServer(options)
  const { pathname } = new URL(options.baseUrl)
  async function send({ method, path, params, headers, body }: HapiRequest): Promise<HapiResponse> {
    const isForm = path.endsWith('/_search')
    const query = new URLSearchParams(params.map(([name, value]) => [name, value])).toString()
    const reply = await app.inject({
      method: method as 'GET',
      url: `${pathname}${path && `/${path}`}${query && !isForm ? `?${query}` : ''}`,
      headers,
      ...(isForm ? { payload: query } : body !== '' && { payload: body }),
    })
    const { connection: _, 'content-length': __, 'transfer-encoding': ___, ...rest } = reply.headers
    return { status: reply.statusCode, headers: rest as HapiResponse['headers'], body: reply.body }
  }
  const get: StoredServer['get'] = (path, params = []) =>
    send({ method: 'GET', path, params, headers: { accept: 'application/fhir+json' }, body: '' })
  return { baseUrl: options.baseUrl, clock, send, get, close: async () => app.close() }
}

async function readRequest(incoming: IncomingMessage): Promise<HapiRequest> {
  const { pathname, searchParams } = new URL(incoming.url ?? '', 'http://hapi.test')
  let body = ''
  for await (const chunk of incoming.setEncoding('utf8')) body += chunk
  const path = decodeURIComponent(pathname.slice('/fhir/'.length))
  const form = path.endsWith('/_search') ? [...new URLSearchParams(body)] : []
  const {
    host: _,
    connection: __,
    'content-length': ___,
    'accept-encoding': ____,
    ...headers
  } = incoming.headers
  return {
    method: incoming.method ?? '',
    path,
    params: [...searchParams, ...form],
    headers: headers as HapiRequest['headers'],
    body: form.length > 0 ? '' : body,
  }
}

/** The server names itself by another URL than the one that it has. */
function otherUrl({ baseUrl }: StoredServer): ReturnType<Behaviour> {
  return async (request, next) => {
    const response = await next(request)
    return { ...response, body: response.body.replaceAll(baseUrl, 'http://hapi.internal:8080/fhir') }
  }
}

/** Every response names HAPI. */
function poweredBy(): ReturnType<Behaviour> {
  return async (request, next) => {
    const { headers, ...response } = await next(request)
    return { ...response, headers: { ...headers, 'x-powered-by': 'HAPI FHIR 8.8.0 REST Server' } }
  }
}

/** Every error message begins with a code. */
function errorCodes(): ReturnType<Behaviour> {
  return async (request, next) => {
    const response = await next(request)
    return response.status === 404 ? refuse(404, '2001', `Resource ${request.path} is not known`) : response
  }
}

/** `metadata` is refused. */
function metadataRefused(): ReturnType<Behaviour> {
  return async (request, next) =>
    request.path === 'metadata'
      ? { status: 403, headers: { 'content-type': 'text/html' }, body: '<h1>Forbidden</h1>' }
      : next(request)
}

/** `metadata` names HAPI. */
function namedSoftware(): ReturnType<Behaviour> {
  return async (request, next) => {
    const response = await next(request)
    if (request.path !== 'metadata' || response.body === '') return response
    const software = { name: 'HAPI FHIR Server', version: '8.8.0' }
    return respond(200, { ...JSON.parse(response.body), software })
  }
}

const METADATA_CHARACTERS = 1_800_000

/** `metadata` is large unless only some elements are asked for, and lists no compartments. */
function largeMetadata(): ReturnType<Behaviour> {
  return async (request, next) => {
    if (request.path !== 'metadata') return next(request)
    const response = await next({ ...request, params: [] })
    if (response.body === '') return response
    const software = { name: 'Hospital FHIR' }
    const { rest, ...statement } = JSON.parse(response.body)
    const { compartment: _, ...server } = rest[0]
    const interaction = ['transaction', 'history-system'].map(code => ({ code }))
    const isShort = request.params.some(([name]) => name === '_elements' || name === '_summary')
    if (isShort) return respond(200, { ...statement, software })
    const documentation = ' '.repeat(METADATA_CHARACTERS)
    return respond(200, { ...statement, software, rest: [{ ...server, interaction, documentation }] })
  }
}
