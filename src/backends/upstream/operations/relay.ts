import { Readable } from 'node:stream'
import { isFailure, isRecord } from '../../../core/index.ts'
import { failFor, findJsonExcess } from '../../../fhir/index.ts'
import {
  type ExportRelay,
  type Failure,
  type FhirRequest,
  failBroken,
  type Operation,
  type RelayedStatus,
} from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import { buildHeaders } from '../http/build-request.ts'
import type { UpstreamResponse } from '../http/read-response.ts'
import { isJson, toFailure } from '../http/response.ts'
import { RESPONSE_VALUES } from '../limits.ts'
import { buildOperationRequest, findReadType } from './operations.ts'

const PREFER = 'respond-async'

/** The upstream's own `$export` (`smart.fhir.upstream-export: relay`). */
export function createRelay(context: GatewayContext, caller: FhirRequest): ExportRelay {
  const { upstream, urls } = context
  const build = (method: 'GET' | 'DELETE', path: string, accept = 'application/json') => ({
    method,
    path,
    headers: { ...buildHeaders(caller), accept },
  })
  return {
    start: request => start(context, request),

    async askStatus(place) {
      const answer = await upstream.ask(build('GET', place))
      if (isFailure(answer)) return answer
      if (answer.status !== 200 && answer.status !== 202) return toFailure(answer, caller)
      return readStatus(answer)
    },

    async end(place) {
      const answer = await upstream.ask(build('DELETE', place))
      if (isFailure(answer)) return answer
      // HAPI answers 404 for an export that is complete.
      const isEnded = answer.status < 300 || answer.status === 404 || answer.status === 410
      return isEnded ? undefined : toFailure(answer, caller)
    },

    async openFile(place) {
      const answer = await upstream.pass(build('GET', place, 'application/fhir+ndjson'))
      if (isFailure(answer)) return answer
      const { status, headers, body } = answer
      const isFile = status === 200 && NDJSON.test(headers['content-type'] ?? '')
      if (isFile) return typeof body === 'string' ? Readable.from([Buffer.from(body)]) : body
      if (typeof body !== 'string') body.destroy()
      if (status === 200) return failBroken('a file of its export is not NDJSON')
      return toFailure({ status, headers, text: typeof body === 'string' ? body : '' }, caller)
    },

    findPlace: url => urls.getPathBelowBase(urls.toUpstream(url))?.replace(/#.*$/, ''),
  }
}

const NDJSON = /^application\/(?:fhir\+|x-)?ndjson\b/i

async function start(context: GatewayContext, request: FhirRequest<Operation>): Promise<string | Failure> {
  const type = findReadType(request)
  if (type !== undefined) return failFor('excluded-type', { type })
  const built = buildOperationRequest(context, dropOutputFormat(request))
  const prefer = request.preferences.lenient ? `${PREFER}, handling=lenient` : PREFER
  const answer = await context.upstream.ask({ ...built, headers: { ...built.headers, prefer } })
  if (isFailure(answer)) return answer
  if (answer.status !== 202) return toFailure(answer, request)
  const url = answer.headers['content-location']
  const place = url === undefined ? undefined : context.urls.getPathBelowBase(url)
  return place || failBroken('the status URL of its export is missing or not below its base URL')
}

// Bulk Data Access, `_outputFormat`: three spellings of the default.
const DEFAULT_FORMAT = /^(?:application\/(?:fhir[+ ])?)?ndjson$/

/** HAPI sends the files of the other spellings of the default as XML. An upstream refuses what it does not know itself. */
function dropOutputFormat(request: FhirRequest<Operation>): FhirRequest<Operation> {
  const { interaction, body } = request
  const isDefault = (name: unknown, values: readonly unknown[]) =>
    name === '_outputFormat' && values.some(it => typeof it === 'string' && DEFAULT_FORMAT.test(it))
  const params = interaction.params.filter(([name, value]) => !isDefault(name, [value]))
  const sent = { ...request, interaction: { ...interaction, params } }
  if (!isRecord(body) || !Array.isArray(body.parameter)) return sent
  const parameter = body.parameter.filter(it => !isRecord(it) || !isDefault(it.name, Object.values(it)))
  // R4 json.html: an array is never empty.
  return { ...sent, body: { ...body, parameter: parameter.length > 0 ? parameter : undefined } }
}

function readStatus({ status, headers, text }: UpstreamResponse): RelayedStatus | Failure {
  const shown = Object.fromEntries(
    SHOWN.flatMap(name => (headers[name] === undefined ? [] : [[name, String(headers[name])]])),
  )
  if (status === 202 && text === '') return { isReady: false, headers: shown }
  // The body of a 202 is a partial manifest, or says nothing.
  const manifest = isJson(headers['content-type']) ? parseManifest(text) : undefined
  if (isFailure(manifest)) return manifest
  if (manifest && Array.isArray(manifest.output)) return { isReady: status === 200, headers: shown, manifest }
  return status === 202
    ? { isReady: false, headers: shown }
    : failBroken('the manifest of its export is not a manifest')
}

// Bulk Data Access, Status Request.
const SHOWN = ['retry-after', 'x-progress', 'expires'] as const

function parseManifest(text: string): Readonly<Record<string, unknown>> | undefined | Failure {
  const excess = findJsonExcess(text, RESPONSE_VALUES)
  if (excess) return failBroken(excess, excess)
  try {
    const manifest: unknown = JSON.parse(text)
    return isRecord(manifest) ? manifest : undefined
  } catch {
    return failBroken('its JSON is invalid')
  }
}
