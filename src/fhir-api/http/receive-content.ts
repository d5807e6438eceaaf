import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { fail, getAuthorizationHeader, limits, sendsContent } from '../../fhir/index.ts'
import { grantFingerprint } from '../../smart/index.ts'
import type { StreamedContent } from '../request.ts'
import { type Failure, isFailure } from '../response.ts'
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
    'content-encoding': encoding,
    'content-type': type = '',
  } = request.headers
  const length = stated === undefined ? undefined : Number(stated)
  if (contentLimit === undefined || encoding !== undefined) return undefined
  if (length !== undefined && length <= bodyLimits.bytes) return undefined
  const interaction = findInteraction(request, api)
  if (isFailure(interaction) || !sendsContent(interaction, type)) return undefined
  if (length !== undefined && length > contentLimit)
    return fail({ problem: 'body-too-large', limit: contentLimit })
  const holder = grantFingerprint(request.authenticated?.grant)
  const limit = findFullLimit(holder)
  if (limit !== undefined) return fail({ problem: 'too-many-contents', limit })
  holders.push(holder)
  payload.once('close', () => {
    holders.splice(holders.indexOf(holder), 1)
  })
  return new ArrivingContent(api, request, payload, { length, limit: contentLimit })
}

/** One grant must not keep all others from sending. */
function findFullLimit(holder: string): number | undefined {
  if (holders.length >= limits.CONTENTS_AT_ONCE) return limits.CONTENTS_AT_ONCE
  const ofGrant = holders.filter(it => it !== '' && it === holder)
  return ofGrant.length >= limits.CONTENTS_OF_GRANT ? limits.CONTENTS_OF_GRANT : undefined
}

class ArrivingContent implements StreamedContent {
  readonly length: number | undefined
  failure: Failure | undefined
  readonly #api: FhirApi
  readonly #request: FastifyRequest
  readonly #payload: Readable
  readonly #limit: number

  constructor(
    api: FhirApi,
    request: FastifyRequest,
    payload: Readable,
    { length, limit }: { readonly length: number | undefined; readonly limit: number },
  ) {
    this.#api = api
    this.#request = request
    this.#payload = payload
    this.#limit = limit
    this.length = length
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    let size = 0
    // The response to a content that is refused must still reach the client.
    for await (const chunk of this.#payload.iterator({ destroyOnReturn: false })) {
      size += chunk.length
      if (size > this.#limit) this.#end(fail({ problem: 'body-too-large', limit: this.#limit }))
      yield chunk
    }
    const caller = await this.#api.guard.authenticate(getAuthorizationHeader(this.#request.raw.rawHeaders))
    if (!caller.allowed) this.#end(fail({ problem: 'refused', refused: caller }))
  }

  #end(failure: Failure): never {
    this.failure = failure
    throw new Error('Cannot receive content')
  }
}
