/**
 * `node bench/auth.ts`: token requests of Sallyport beside `oidc-provider`, and beside the signatures alone, which no server
 * can avoid. The goal is a part of the signatures that one core computes: signatures run in other threads, so a process with
 * a second core responds to one request in the CPU time of its main thread. A second goal divides the CPU time of
 * `oidc-provider` on SQLite, in all threads, by ours: 0.85 of its time for a code, 0.95 for the others.
 */
import { join } from 'node:path'
import { GRANTS, type Grant } from './auth/grants.ts'
import { measureCryptography } from './auth/signatures.ts'
import { compare } from './shared/compare.ts'
import { getVersion, startContender } from './shared/contender.ts'
import { reportServers, takeMedian } from './shared/report.ts'

const GOALS: Readonly<Record<Grant, number>> = {
  code: 0.75,
  refresh: 0.75,
  'client_credentials RS384': 0.65,
  'client_credentials ES384': 0.65,
}
const PEER_GOALS: Readonly<Record<Grant, number>> = {
  code: 1.18,
  refresh: 1.05,
  'client_credentials RS384': 1.05,
  'client_credentials ES384': 1.05,
}
// `oidc-provider` stores at most 1000 values in memory.
const REQUESTS = 160
const PEER = `oidc-provider ${getVersion('oidc-provider')}`
const DURABLE_PEER = `${PEER}, on SQLite`
const SERVE = join(import.meta.dirname, 'auth/serve.ts')

const limits = [measureCryptography()]
const measured = await compare(
  [
    await startContender('Sallyport, on SQLite, audited', SERVE, ['sallyport']),
    await startContender(DURABLE_PEER, SERVE, ['durable']),
    await startContender(`${PEER}, in memory`, SERVE, ['memory']),
  ],
  {
    requests: Object.fromEntries(GRANTS.map(grant => [grant, REQUESTS])),
    connections: 16,
    warmRounds: 4,
    rounds: 7,
  },
)
limits.push(measureCryptography(), measureCryptography())

await reportServers(
  'peers',
  GRANTS.flatMap(grant => {
    const rows = measured.filter(({ request }) => request === grant)
    const cpu = takeMedian(limits.map(it => it[grant]))
    const [own] = rows
    const goal = { value: cpu / (own?.main ?? 0), least: GOALS[grant] }
    const compared = rows.map(it =>
      it.server === DURABLE_PEER
        ? { ...it, goal: { value: it.cpu / (own?.cpu ?? 0), least: PEER_GOALS[grant] } }
        : it,
    )
    return [...compared, { request: grant, server: 'signatures alone, one core', cpu, rate: 1e6 / cpu, goal }]
  }),
)
