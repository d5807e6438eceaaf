/**
 * `node bench/auth.ts`: the CPU time of token requests beside its cryptographic part, which is all that one core could
 * do, and beside `oidc-provider`. Each server is a process of its own; they take turns in one run, over sockets, with the
 * same number of connections.
 *
 * - `cpu`: microseconds of CPU time a request, in all threads of the server.
 * - `main`: the part of the main thread. Signatures are computed in other threads, so with a free second core a process
 *   responds to one request in this time.
 * - `share`: cryptography divided by `cpu`: the throughput on a single core, as a share of its signatures.
 * - `of limit`: cryptography divided by `main`: the throughput with a second core, as a share of the signatures of one
 *   core. Exits 1 below the goal.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Pool } from 'undici'
import { type Form, GRANTS, type Grant } from './auth/grants.ts'
import { measureCryptography } from './auth/signatures.ts'

const GOALS: Readonly<Record<Grant, number>> = {
  code: 0.75,
  refresh: 0.75,
  'client_credentials RS384': 0.65,
  'client_credentials ES384': 0.65,
}
const ROUNDS = 9
const WARM_ROUNDS = 4
const CONNECTIONS = 16
// `oidc-provider` stores at most 1000 values in memory.
const REQUESTS = 160

interface Server {
  readonly name: string
  readonly child: ChildProcess
  readonly pool: Pool
  readonly host: string
  readonly path: string
}

interface Cost {
  readonly cpu: number
  readonly main: number
}

const SERVE = join(import.meta.dirname, 'auth/serve.ts')

async function start(name: string, file: string): Promise<Server> {
  const child = fork(file, [name], { stdio: ['ignore', 'inherit', 'ignore', 'ipc'] })
  const [{ port, host, path }] = await once(child, 'message')
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CONNECTIONS })
  return { name, child, pool, host, path }
}

async function ask<Reply>({ child }: Server, message: string | object): Promise<Reply> {
  child.send(message)
  const [reply] = await once(child, 'message')
  return reply
}

async function measure(server: Server, grant: Grant): Promise<Cost> {
  const { forms } = await ask<{ forms: Form[] }>(server, { grant, count: REQUESTS })
  const before = await ask<{ all: number; main: number }>(server, 'usage')
  await Promise.all(Array.from({ length: CONNECTIONS }, () => sendAll(server, forms)))
  const after = await ask<{ all: number; main: number }>(server, 'usage')
  return { cpu: (after.all - before.all) / REQUESTS, main: (after.main - before.main) / REQUESTS }
}

async function sendAll(server: Server, forms: Form[]): Promise<void> {
  for (let form = forms.pop(); form; form = forms.pop()) await send(server, form)
}

async function send({ pool, host, path }: Server, form: Form): Promise<void> {
  const headers = { host, 'content-type': 'application/x-www-form-urlencoded' }
  const body = new URLSearchParams(form).toString()
  const response = await pool.request({ method: 'POST', path, headers, body })
  const text = await response.body.text()
  if (response.statusCode !== 200) throw new Error(`Cannot bench: ${response.statusCode} ${text}`)
}

const median = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0

const servers = [await start('sallyport', SERVE), await start('oidc-provider', SERVE)]
const costs = new Map(servers.map(server => [server, new Map<Grant, Cost[]>(GRANTS.map(it => [it, []]))]))
const limits: Readonly<Record<Grant, number>>[] = []
for (let round = 0; round < WARM_ROUNDS + ROUNDS; round++) {
  if (round >= WARM_ROUNDS) limits.push(measureCryptography())
  for (const server of servers)
    for (const grant of GRANTS) {
      const cost = await measure(server, grant)
      if (round >= WARM_ROUNDS) costs.get(server)?.get(grant)?.push(cost)
    }
}

let isMissed = false
process.stdout.write('| request | server | cpu (us) | main (us) | cryptography (us) | share | of limit |\n')
process.stdout.write('|---|---|---|---|---|---|---|\n')
for (const grant of GRANTS)
  for (const server of servers) {
    const rounds = costs.get(server)?.get(grant) ?? []
    const limit = median(limits.map(it => it[grant]))
    const [cpu, main] = [median(rounds.map(it => it.cpu)), median(rounds.map(it => it.main))]
    const ratio = limit / main
    if (server === servers[0]) isMissed ||= ratio < GOALS[grant]
    const goal = server === servers[0] ? ` (goal ${GOALS[grant]})` : ''
    process.stdout.write(
      `| ${grant} | ${server.name} | ${cpu.toFixed(0)} | ${main.toFixed(0)} | ${limit.toFixed(0)} | ${(limit / cpu).toFixed(2)} | ${ratio.toFixed(2)}${goal} |\n`,
    )
  }
for (const server of servers) {
  await server.pool.close()
  server.child.disconnect()
}
process.exitCode = isMissed ? 1 : 0
