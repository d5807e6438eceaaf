import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it, mock } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { fullAccess } from '../../../smart/index.ts'
import { createLogger } from '../../../web/http/index.ts'
import { createAuthenticator, type Fhir, patient, patientAccess } from '../../sqlite/testing/fhir.ts'
import type { GatewayOptions } from '../index.ts'
import {
  type HostileUpstream,
  json,
  METADATA,
  startHostile,
  type UpstreamHandler,
} from '../testing/hostile-upstream.ts'
import { startGateway } from '../testing/start-gateway.ts'

const guard = createAuthenticator({ all: fullAccess, ann: patientAccess('ann') })
const AWAY = 'Upstream FHIR server unavailable: it does not answer'
const REFUSED = 'Upstream FHIR server unavailable: it does not accept the credentials of the gateway'
const FORBIDDEN = 'Upstream FHIR server unavailable: it refuses the requests of the gateway (403)'
const ELEMENTS = 'GET /metadata?_elements=status,fhirVersion'
const WELL = 'Upstream FHIR server recovered'

interface Watched {
  readonly upstream: HostileUpstream
  readonly fhir: Fhir
  /** Lets seconds pass while the gateway is idle. */
  pass(seconds: number): Promise<void>
  /** Lets time pass until /readyz has this status; returns its reason. */
  until(status: 200 | 503): Promise<string>
  /** The logged messages about the upstream. */
  log(): readonly string[]
  readonly raw: () => string
}

async function watched(
  options: Partial<GatewayOptions>,
  work: (it: Watched) => Promise<void>,
): Promise<void> {
  const upstream = await startHostile()
  const lines: string[] = []
  // The default of the command line.
  const logger = createLogger({ level: 'warn', destination: { write: line => lines.push(line) } })
  let now = 0
  const fhir = await startGateway(upstream.url, { guard, logger, clock: () => now, ...options })
  async function pass(seconds: number): Promise<void> {
    for (let at = 0; at < seconds; at++) {
      now += 1_000
      mock.timers.tick(1_000)
      // Waits for a running probe, and starts none.
      if (at % 5 === 4) await fhir.app.inject({ url: '/readyz' })
    }
  }
  async function until(status: number): Promise<string> {
    for (const started = performance.now(); performance.now() - started < 5_000; ) {
      now += 1_000
      mock.timers.tick(1_000)
      await setImmediate()
      const reply = await fhir.app.inject({ url: '/readyz' })
      if (reply.statusCode === status) return reply.json().checks[0].reason
    }
    throw new Error(`Readiness never said ${status}`)
  }
  const log = () =>
    lines.map(line => JSON.parse(line).msg).filter(text => text.startsWith('Upstream FHIR server'))
  try {
    await work({ upstream, fhir, pass, until, log, raw: () => lines.join('') })
  } finally {
    await fhir.close()
    await upstream.close()
  }
}

describe('the watch over the upstream', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setInterval'] }))
  afterEach(() => mock.timers.reset())

  it('logs one line when the upstream stops answering, however many requests fail, and one when it recovers', () =>
    watched({}, async ({ upstream, fhir, until, log, raw }) => {
      await until(200)
      assert.deepEqual(log(), [])
      await upstream.close()
      assert.equal(await until(503), 'the upstream FHIR server is unavailable: it does not answer')
      for (let at = 0; at < 10; at++) await Promise.all([until(503), fhir.as('ann')('GET Patient/ann')])
      assert.deepEqual(log(), [AWAY])
      assert.match(raw(), /ECONNREFUSED/)
      await upstream.reopen()
      await until(200)
      assert.deepEqual(log(), [AWAY, WELL])
    }))

  it('logs one line when the upstream refuses the credentials, and never logs them', () =>
    watched({ auth: { kind: 'bearer', token: 'of-the-gateway' } }, async ({ upstream, until, log, raw }) => {
      for (const status of [401, 403]) {
        upstream.answerMetadata((_request, response) => json(response, {}, status))
        upstream.answerJson({}, status)
        const [, reason = ''] = (await until(503)).split('unavailable: ')
        assert.ok((status === 401 ? REFUSED : FORBIDDEN).endsWith(reason), reason)
        for (let at = 0; at < 10; at++) await until(503)
        upstream.answerMetadata((_request, response) => json(response, METADATA))
        upstream.answerJson({})
        await until(200)
      }
      assert.deepEqual(log(), [REFUSED, WELL, FORBIDDEN, WELL])
      assert.doesNotMatch(raw(), /of-the-gateway/)
    }))

  for (const status of [401, 403])
    it(`uses an upstream whose metadata alone are refused with ${status} (GATEWAY-39)`, () =>
      watched({}, async ({ upstream, until, log }) => {
        upstream.answerMetadata((_request, response) => json(response, {}, status))
        upstream.answerJson({ resourceType: 'Bundle', type: 'searchset', total: 1 })
        await until(200)
        for (let at = 0; at < 5; at++) await until(200)
        assert.deepEqual(log(), [])
      }))

  it('keeps the upstream unavailable while requests are refused, even if its metadata is public', () =>
    watched({}, async ({ upstream, fhir, until, log }) => {
      let isRight = false
      upstream.answer((_request, response) => json(response, {}, isRight ? 200 : 401))
      await until(200)
      for (const token of ['ann', 'all']) assert.equal((await fhir.as(token)('GET Patient/ann')).status, 502)
      await until(503)
      for (let at = 0; at < 5; at++) {
        await fhir.as('ann')('GET Patient/ann')
        await until(503)
      }
      isRight = true
      await until(200)
      assert.deepEqual(log(), [REFUSED, WELL])
    }))

  describe('for a gateway with client credentials', () => {
    const auth = { kind: 'client-credentials', tokenUrl: 'https://idp.test/t', clientId: 'a' } as const
    let answer: () => Response
    let acceptedToken: string
    const own = (first: () => Response, work: (it: Watched) => Promise<void>) => {
      answer = first
      acceptedToken = 'first'
      return watched({ auth: { ...auth, clientSecret: 'hidden' }, fetch: async () => answer() }, async it => {
        const handler: UpstreamHandler = ({ headers }, response) =>
          json(response, patient('ann'), headers.authorization === `Bearer ${acceptedToken}` ? 200 : 401)
        it.upstream.answerMetadata(handler)
        it.upstream.answer(handler)
        await work(it)
        assert.doesNotMatch(it.raw(), /hidden|first|second/)
      })
    }
    const failToFetch = () => {
      throw new TypeError('fetch failed', { cause: new Error('self-signed certificate') })
    }
    const token = (access_token: string) => () => Response.json({ access_token, expires_in: 3600 })

    it('logs once that it gets no token, and once that it gets one', () =>
      own(
        () => new Response('no', { status: 401 }),
        async ({ until, log, raw }) => {
          assert.match(await until(503), /: the gateway gets no access token for it$/)
          for (let at = 0; at < 10; at++) await until(503)
          answer = token('first')
          await until(200)
          const none = 'Upstream FHIR server unavailable: the gateway gets no access token for it'
          assert.deepEqual(log(), [none, WELL])
          assert.match(raw(), /its token endpoint answered 401/)
        },
      ))

    for (const [what, given, reason] of [
      [
        'an OAuth error',
        () => Response.json({ error: 'invalid_scope' }, { status: 400 }),
        /answered 400 with invalid_scope"/,
      ],
      ['no access token', () => Response.json({ token: 'first' }), /its token response has no access_token"/],
      ['no JSON', () => new Response('first'), /its token response is not JSON"/],
    ] as const)
      it(`logs that the token endpoint answers with ${what}`, () =>
        own(given, async ({ until, raw }) => {
          await until(503)
          assert.match(raw(), reason)
        }))

    it('logs why a connection to the token endpoint fails', () =>
      own(failToFetch, async ({ until, raw }) => {
        await until(503)
        assert.match(raw(), /"cause":"fetch failed: self-signed certificate"/)
      }))

    it('requests a new token if the upstream refuses the old one, in a probe or in a request', () =>
      own(token('first'), async ({ fhir, until, log }) => {
        await until(200)
        acceptedToken = 'second'
        await until(503)
        answer = token('second')
        await until(200)
        assert.deepEqual(log(), [REFUSED, WELL])
        for (const [next, caller] of [
          ['third', 'all'],
          ['fourth', 'ann'],
        ] as const) {
          acceptedToken = next
          answer = token(next)
          assert.equal((await fhir.as(caller)('GET Patient/ann')).status, 200)
        }
      }))
  })

  it('does not report an outage after one failed request', () =>
    watched({}, async ({ upstream, fhir, until, log }) => {
      upstream.answer((request, response) =>
        request.url?.includes('/Patient/ann') ? json(response, {}, 503) : json(response, patient('x')),
      )
      await until(200)
      assert.equal((await fhir.as('ann')('GET Patient/ann')).status, 503)
      await until(200)
      assert.deepEqual(log(), [])
    }))

  describe('over an idle upstream', () => {
    /** The requests for `metadata` while these minutes pass. */
    async function countIn(minutes: number, answer: UpstreamHandler): Promise<readonly string[]> {
      const lines: string[] = []
      await watched({}, async ({ upstream, fhir, pass }) => {
        await fhir.app.inject({ url: '/readyz' })
        await fhir('GET metadata')
        upstream.answerMetadata((request, response, body) => {
          lines.push(`${request.method} ${request.url?.slice('/up'.length)}`)
          answer(request, response, body)
        })
        await pass(minutes * 60)
      })
      return lines
    }

    it('sends HEAD every 5 s, and reads the CapabilityStatement every 10 minutes (GATEWAY-18)', async () => {
      const lines = await countIn(10, (_request, response) => json(response, METADATA))
      assert.deepEqual(
        [
          lines.filter(it => it === 'HEAD /metadata').length,
          lines.filter(it => it === 'GET /metadata').length,
        ],
        [120, 1],
      )
    })

    it('requests two elements if HEAD is not supported, and all if _elements is not supported either (GATEWAY-18)', async () => {
      const onlyGet: UpstreamHandler = ({ method }, response) =>
        json(response, METADATA, method === 'GET' ? 200 : 405)
      const some = await countIn(1, onlyGet)
      assert.deepEqual([some[0], new Set(some.slice(1))], ['HEAD /metadata', new Set([ELEMENTS])])
      const onlyPlain: UpstreamHandler = ({ method, url }, response) =>
        json(response, METADATA, method === 'GET' && !url?.includes('?') ? 200 : 400)
      const all = await countIn(1, onlyPlain)
      assert.deepEqual(all.slice(0, 3), ['HEAD /metadata', ELEMENTS, 'GET /metadata'])
      assert.deepEqual(new Set(all.slice(3)), new Set(['GET /metadata']))
    })
  })

  it('reads the CapabilityStatement at the start and after an outage (GATEWAY-18)', () =>
    watched({}, async ({ upstream, fhir, until }) => {
      const lines: (string | undefined)[] = []
      await until(200)
      upstream.answerMetadata((request, response) => {
        lines.push(request.method)
        json(response, METADATA)
      })
      await upstream.close()
      await until(503)
      assert.deepEqual(lines, [])
      await upstream.reopen()
      await until(200)
      while (!lines.some(it => it === 'GET')) await setImmediate()
      assert.equal((await fhir('GET metadata')).status, 200)
      assert.deepEqual(
        lines.filter(it => it === 'GET'),
        ['GET'],
      )
    }))

  it('does not fail fast requests because of slow probes, and then sends another probe (GATEWAY-18)', () =>
    watched({ timeoutMs: 200 }, async ({ upstream, fhir, pass, until }) => {
      upstream.answer((request, response) => {
        if (!isSlow || !request.url?.includes('?')) json(response, patient('ann'))
      })
      let isSlow = true
      await fhir('GET metadata')
      upstream.answerMetadata(() => undefined)
      await pass(60)
      assert.equal((await fhir.as('ann')('GET Patient/ann')).status, 200)
      isSlow = false
      await until(200)
      await pass(5)
      assert.equal(upstream.seen.at(-1)?.line, 'GET /up/Patient?_summary=count&_count=0')
    }))
})
