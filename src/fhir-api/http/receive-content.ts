import { finished, type Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { isFailure } from '../../core/index.ts'
import { failFor, getAuthorizationHeader, limits, sendsContent } from '../../fhir/index.ts'
import { grantFingerprint } from '../../smart/index.ts'
import type { StreamedContent } from '../request.ts'
import { type Failure, failRefused } from '../response.ts'
import { type FhirApi, findInteraction } from './fhir-api.ts'

/** The grants whose contents this process receives at the moment. Each content may hold a connection to the upstream. */
const holders: string[] = []

/**
 * The content of a Binary that is too large for memory, while it arrives; undefined if the body has to be read as a whole.
 * The content ends with an error if it is too large, or if the token has ended meanwhile: then nothing is stored.
 */
export function receiveContent(
  api: FhirApi,
  request: FastifyRequest,
  payload: Readable,
): StreamedContent | Failure | undefined {
  const { contentLimit, bodyLimits } = api
  const {
    'content-length': stated,
    'transfer-encoding': chunked,
    'content-encoding': encoding,
    'content-type': type = '',
  } = request.headers
  const length = stated === undefined ? undefined : Number(stated)
  // RFC 9112, 6.3: a request with neither has no body.
  const hasBody = stated !== undefined || chunked !== undefined
  if (contentLimit === undefined || encoding !== undefined || !hasBody) return undefined
  if (length !== undefined && length <= Math.min(bodyLimits.bytes, limits.BODY_BYTES)) return undefined
  const interaction = findInteraction(request, api)
  if (isFailure(interaction) || !sendsContent(interaction, type)) return undefined
  if (length !== undefined && length > contentLimit) return failFor('body-too-large', { limit: contentLimit })
  const holder = grantFingerprint(request.authenticated?.grant)
  const limit = findFullLimit(holder)
  if (limit !== undefined) return failFor('contents-too-many', { limit })
  holders.push(holder)
  finished(payload, () => holders.splice(holders.indexOf(holder), 1))
  return readArriving(api, request, payload, length, contentLimit)
}

/** One grant must not keep all others from sending. */
function findFullLimit(holder: string): number | undefined {
  if (holders.length >= limits.CONTENTS_AT_ONCE) return limits.CONTENTS_AT_ONCE
  const ofGrant = holders.filter(it => it !== '' && it === holder)
  return ofGrant.length >= limits.CONTENTS_OF_GRANT ? limits.CONTENTS_OF_GRANT : undefined
}

function readArriving(
  { guard }: FhirApi,
  { raw }: FastifyRequest,
  payload: Readable,
  length: number | undefined,
  limit: number,
): StreamedContent {
  let failure: Failure | undefined
  const end = (reason: Failure): never => {
    failure = reason
    throw new Error('Cannot receive content')
  }
  return {
    length,
    get failure() {
      return failure
    },
    async *[Symbol.asyncIterator]() {
      let size = 0
      // The response to a content that is refused must still reach the client.
      for await (const chunk of payload.iterator({ destroyOnReturn: false })) {
        size += chunk.length
        if (size > limit) end(failFor('body-too-large', { limit }))
        yield chunk
      }
      const caller = await guard.authenticate(getAuthorizationHeader(raw.rawHeaders))
      if (!caller.allowed) end(failRefused(caller))
    },
  }
}
