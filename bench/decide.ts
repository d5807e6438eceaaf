/**
 * `node bench/decide.ts`: what the interceptor costs a request. A decision for 50 scopes is to stay under 5 us, a
 * request with a token seen before under 20 us; exits 1 when either does not.
 */
import { parseInteraction } from '../src/fhir/index.ts'
import { createInterceptor, decide } from '../src/interceptor/index.ts'
import { authUrl, fhirBaseUrl, TestIssuer } from '../src/interceptor/testing/test-issuer.ts'
import { parseScopes } from '../src/smart/index.ts'

const ROUNDS = 7
const TYPES = ['Account', 'Basic', 'Claim', 'Flag', 'Goal', 'List', 'Media', 'Person', 'Task', 'Consent']
const scope = TYPES.flatMap(type => [
  `patient/${type}.c`,
  `patient/${type}.r`,
  `patient/${type}.u`,
  `patient/${type}.d`,
])
  .concat(
    TYPES.slice(1).map(type => `user/${type}.cruds`),
    'patient/Condition.rs',
  )
  .join(' ')
const policy = { fhirBaseUrl, contexts: ['patient', 'user', 'system'], searchPermission: 'r' } as const
const request = {
  method: 'GET',
  path: '/Condition',
  query: 'patient=1&_count=20',
  headers: { accept: '*/*' },
}
const interaction = parseInteraction(request)
if (interaction.kind === 'misunderstood') throw new Error('Cannot bench: the request is not understood')
const scopes = parseScopes(scope)
if (scopes.length !== 50) throw new Error(`Cannot bench: expected 50 scopes, got ${scopes.length}`)

/** Microseconds of processor time a call, of the best round: wall time counts the company on the machine. */
async function time(calls: number, round: () => unknown): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let at = 0; at < ROUNDS; at++) {
    const before = process.cpuUsage()
    await round()
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / calls)
  }
  return best
}

/** So many calls, one after the other. */
function loop(calls: number, work: () => unknown): () => void {
  return () => {
    for (let call = 0; call < calls; call++) work()
  }
}

const auth = new TestIssuer()
const guard = createInterceptor({
  authUrl,
  fhirBaseUrl,
  fetch: auth.fetch,
  clock: auth.clock,
  contexts: policy.contexts,
})
const warm = auth.bearer({ scope })
const COLD = 500
const cold = Array.from({ length: COLD * ROUNDS }, (_, at) => auth.bearer({ scope, jti: `${at}` }))
let next = 0

async function admit(authorization: string): Promise<void> {
  const caller = await guard.authenticate(authorization)
  const read = parseInteraction(request)
  if (!caller.allowed || read.kind === 'misunderstood' || !caller.decide(read).allowed)
    throw new Error('Cannot bench: the request was refused')
}

async function admitMany(calls: number, authorization: () => string): Promise<void> {
  for (let call = 0; call < calls; call++) await admit(authorization())
}

const WARM = 50_000
const fresh = () => decide(interaction, { scopes, patient: '1' }, policy)
const results = [
  {
    what: 'parse a request',
    us: await time(
      100_000,
      loop(100_000, () => parseInteraction(request)),
    ),
  },
  { what: 'decide, 50 scopes, new grant', limit: 5, us: await time(50_000, loop(50_000, fresh)) },
  {
    what: 'admit and decide, warm token',
    limit: 20,
    us: await time(WARM, () => admitMany(WARM, () => warm)),
  },
  {
    what: 'admit and decide, cold token',
    us: await time(COLD, () => admitMany(COLD, () => cold[next++] ?? warm)),
  },
]
for (const { what, us, limit } of results)
  process.stdout.write(
    `${what.padEnd(32)} ${us.toFixed(2).padStart(8)} us${limit ? `  (limit ${limit} us)` : ''}\n`,
  )
process.exitCode = results.some(({ us, limit }) => limit !== undefined && us > limit) ? 1 : 0
