import type { Resource } from '../../fhir/index.ts'
import type { HostOptions } from '../host/host-options.ts'
import type { Handler, leakyHosts, RunningHost } from './leaky-hosts.ts'
import { authUrl, fhirBaseUrl, TestIssuer } from './test-issuer.ts'

export const auth = new TestIssuer()
export const NOT_WITHIN = 'Not within the granted patient, user or filter.'

export function makeCondition(patient: string, more: object = {}): Resource {
  return { resourceType: 'Condition', subject: { reference: `Patient/${patient}` }, ...more }
}

export function makeBundle(...resources: object[]): object {
  return { resourceType: 'Bundle', type: 'searchset', entry: resources.map(resource => ({ resource })) }
}

interface HostAnswer {
  readonly status: number
  readonly text: string
  readonly headers: Headers
  /** The text of the first issue, where a refusal was answered. */
  readonly why: string
}

const OPTIONS: HostOptions = {
  authUrl,
  fhirBaseUrl,
  contexts: ['patient', 'user', 'system'],
  fetch: auth.fetch,
  clock: auth.clock,
}

/** A host that answers what a test says, counts how often it is asked, and is asked with tokens for patient 1. */
export class TestHost {
  requests = 0
  handler: Handler = (_request, response) => response.end()
  readonly store = new Map<string, Resource>()
  readonly #start: (typeof leakyHosts)[string]
  readonly #hosts: RunningHost[] = []

  constructor(start: (typeof leakyHosts)[string]) {
    this.#start = start
  }

  /** The one that tells what is stored. */
  get running(): RunningHost {
    const [first] = this.#hosts
    if (!first) throw new Error('Cannot ask host: it has not begun')
    return first
  }

  async start(): Promise<void> {
    await this.run({ stored: async (type, id) => this.store.get(`${type}/${id}`) })
  }

  async run(more: Partial<HostOptions> = {}): Promise<RunningHost> {
    const started = await this.#start({ ...OPTIONS, ...more }, (request, response) => {
      this.requests += 1
      this.handler(request, response)
    })
    this.#hosts.push(started)
    return started
  }

  async close(): Promise<void> {
    await Promise.all(this.#hosts.map(host => host.close()))
  }

  /** The host answers with this, whatever it is asked. */
  respondWith(body: unknown, status = 200, headers: Record<string, string> = {}): void {
    this.handler = (_request, response) => {
      response.writeHead(status, { 'content-type': 'application/fhir+json', etag: 'W/"1"', ...headers })
      response.end(typeof body === 'string' ? body : JSON.stringify(body))
    }
  }

  async send(
    line: string,
    scope = 'patient/*.cruds',
    body?: unknown,
    on = this.running,
    more: object = {},
  ): Promise<HostAnswer> {
    const [method = '', url = ''] = line.split(' ')
    const type = typeof body === 'string' ? 'application/x-www-form-urlencoded' : 'application/fhir+json'
    const response = await fetch(`${on.url}/fhir${url}`, {
      method,
      headers: {
        authorization: auth.bearer({ scope, fhirUser: 'Practitioner/p1' }),
        ...(body !== undefined && { 'content-type': type }),
        ...more,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const outcome = text.startsWith('{"resourceType":"OperationOutcome"') ? JSON.parse(text) : undefined
    return {
      status: response.status,
      text,
      headers: response.headers,
      why: outcome?.issue[0].details?.text ?? '',
    }
  }
}
