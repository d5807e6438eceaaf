/**
 * `node bench/auth.ts`: what a token costs beyond its cryptography. Each ratio is what the signatures alone (and, for
 * back ends, the verification of the assertion) take of the whole, in processor time of one run: code exchange is to
 * reach 0.75, refresh 0.70, client_credentials 0.65 for RS384 and for ES384; exits 1 when one does not. The same is
 * asked of `oidc-provider` beside it.
 */
import { oidcProviderBench } from './auth/oidc-provider.ts'
import { ownBench } from './auth/own.ts'
import { signatureCosts } from './auth/signatures.ts'

const GOALS = { code: 0.75, refresh: 0.7, 'back end RS384': 0.65, 'back end ES384': 0.65 } as const

const costs = signatureCosts()
const own = await ownBench()
const theirs = await oidcProviderBench()

let missed = false
for (const [name, goal] of Object.entries(GOALS) as [keyof typeof GOALS, number][]) {
  const limit = costs[name]
  const [ours, other] = [own[name], theirs[name]]
  const ratio = limit / ours
  missed ||= ratio < goal
  const beside =
    other === undefined ? 'not claimed' : `${other.toFixed(0)} us (${(limit / other).toFixed(2)})`
  process.stdout.write(
    `${name}: cryptography ${limit.toFixed(0)} us, ours ${ours.toFixed(0)} us, ratio ${ratio.toFixed(2)} (goal ${goal}); oidc-provider ${beside}\n`,
  )
}
process.exit(missed ? 1 : 0)
