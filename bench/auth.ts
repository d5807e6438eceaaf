/**
 * `node bench/auth.ts`: the share of cryptography in the CPU time of a token request. Each ratio divides the cost of the
 * signatures (for back-end services also of verifying the assertion) by the cost of the whole request, in one run. The
 * limits are 0.75 for a code, 0.70 for a refresh token, 0.65 for client_credentials with RS384 and ES384; exits 1 below.
 * `oidc-provider` does the same work beside it.
 */
import { oidcProviderBench } from './auth/oidc-provider.ts'
import { measureOwn } from './auth/own.ts'
import { signatureCosts } from './auth/signatures.ts'

const GOALS = { code: 0.75, refresh: 0.7, 'back end RS384': 0.65, 'back end ES384': 0.65 } as const

const costs = signatureCosts()
const own = await measureOwn()
const theirs = await oidcProviderBench()

let missed = false
for (const [name, goal] of Object.entries(GOALS) as [keyof typeof GOALS, number][]) {
  const limit = costs[name]
  const [ours, other] = [own[name], theirs[name]]
  const ratio = limit / ours
  missed ||= ratio < goal
  const beside =
    other === undefined ? 'not supported' : `${other.toFixed(0)} us (${(limit / other).toFixed(2)})`
  process.stdout.write(
    `${name}: cryptography ${limit.toFixed(0)} us, ours ${ours.toFixed(0)} us, ratio ${ratio.toFixed(2)} (goal ${goal}); oidc-provider ${beside}\n`,
  )
}
process.exit(missed ? 1 : 0)
