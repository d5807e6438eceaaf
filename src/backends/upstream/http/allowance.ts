import { isFailure } from '../../../core/index.ts'
import { failFor, type Work } from '../../../fhir/index.ts'
import type { Failure } from '../../../fhir-api/index.ts'
import { SKIMMED_BYTES, UPSTREAM_CHARACTERS } from '../limits.ts'
import { DISCONNECTED, type ProbeRequest, type Upstream } from './client.ts'
import type { UpstreamRequest } from './exchange.ts'
import type { Skimming } from './read-response.ts'
import type { UpstreamCaller } from './slots.ts'

/**
 * The upstream on behalf of a caller. It sends nothing after the caller has disconnected, counts every request and the size
 * of its response as work, and limits the size of all responses. A class, because there is one for every request.
 */
export class CallerUpstream implements Upstream {
  readonly #client: Upstream
  readonly #caller: UpstreamCaller
  readonly #work: Work
  #characters = 0
  #skimmed = 0

  constructor(client: Upstream, caller: UpstreamCaller, work: Work) {
    this.#client = client
    this.#caller = caller
    this.#work = work
  }

  async ask(request: UpstreamRequest) {
    const answer = this.#findRefusal() ?? (await this.#client.ask(request, this.#caller))
    if (!isFailure(answer)) this.#countText(answer.text)
    return answer
  }

  async pass(request: UpstreamRequest) {
    return this.#findRefusal() ?? this.#client.pass(request, this.#caller)
  }

  async skim(request: UpstreamRequest, skimming: Skimming) {
    const answer = this.#findRefusal() ?? (await this.#client.skim(request, skimming, this.#caller))
    if (isFailure(answer)) return answer
    this.#skimmed += answer.bytes
    this.#countText(answer.text)
    return answer
  }

  probe(request: ProbeRequest) {
    return this.#client.probe(request)
  }

  #findRefusal(): Failure | undefined {
    if (this.#caller.connection.destroyed) return DISCONNECTED
    if (this.#characters > UPSTREAM_CHARACTERS || this.#skimmed > SKIMMED_BYTES) return TOO_MUCH
    return this.#work.count('request')
  }

  /** An answer is never withheld: it may be that to a change. The next request is refused. */
  #countText(text: string): void {
    this.#characters += text.length
    this.#work.count('character', text.length)
  }
}

const TOO_MUCH = failFor('upstream-characters-too-many', { most: UPSTREAM_CHARACTERS })
