/** `node bench/decide.ts`: the CPU time that the interceptor adds to a request. Exits 1 above a limit. */
import { parseInteraction } from '../src/fhir/index.ts'
import { createInterceptor, decide } from '../src/interceptor/index.ts'
import { authUrl, fhirBaseUrl, TestIssuer } from '../src/interceptor/testing/test-issuer.ts'
import { parseScopes } from '../src/smart/index.ts'
import { reportValues } from './shared/report.ts'

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

/** Microseconds of CPU time of a call, in the best round. */
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

async function authenticate(authorization: string): Promise<void> {
  const caller = await guard.authenticate(authorization)
  const read = parseInteraction(request)
  if (!caller.allowed || read.kind === 'misunderstood' || !caller.decide(read).allowed)
    throw new Error('Cannot bench: the request was refused')
}

async function authenticateMany(calls: number, authorization: () => string): Promise<void> {
  for (let call = 0; call < calls; call++) await authenticate(authorization())
}

const WARM = 50_000
const fresh = () => decide(interaction, { scopes, patient: '1' }, policy)
await reportValues([
  {
    measured: 'parse a request: CPU (µs)',
    value: await time(
      WARM,
      loop(WARM, () => parseInteraction(request)),
    ),
  },
  { measured: 'decide, 50 scopes, new grant: CPU (µs)', value: await time(WARM, loop(WARM, fresh)), most: 5 },
  {
    measured: 'authenticate and decide, known token: CPU (µs)',
    value: await time(WARM, () => authenticateMany(WARM, () => warm)),
    most: 20,
  },
  {
    measured: 'authenticate and decide, new token: CPU (µs)',
    value: await time(COLD, () => authenticateMany(COLD, () => cold[next++] ?? warm)),
  },
])
