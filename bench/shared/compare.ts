import type { Contender, Usage } from './contender.ts'
import { sendAll } from './load.ts'
import { type Measured, takeMedian } from './report.ts'

export interface Plan {
  /** The number of requests of a round, by kind. */
  readonly requests: Readonly<Record<string, number>>
  readonly connections: number
  readonly warmRounds: number
  readonly rounds: number
}

/** One round each: shows that a bench works, and no more. */
export const isQuick = process.env.BENCH_QUICK !== undefined
/** A turn of `npm run bench -- --against`: few rounds, and only of our own servers. */
const isTurn = process.env.BENCH_TURN !== undefined
const ROUNDS_OF_TURN = 3

type Round = Usage & Pick<Measured, 'rate'>
interface Compared extends Measured, Usage {
  /** Of each round. */
  readonly cpus: readonly number[]
  readonly mains: readonly number[]
  readonly rates: readonly number[]
}

/** Measures all servers, which take turns, so that other load on the machine affects all of them alike, and stops them. */
export async function compare(contenders: readonly Contender[], plan: Plan): Promise<readonly Compared[]> {
  const measuredOnes = contenders.filter(({ name }) => !isTurn || name.startsWith('Sallyport'))
  const pairs = Object.keys(plan.requests).flatMap(request =>
    measuredOnes.map(contender => ({ request, contender, measured: [] as Round[] })),
  )
  const rounds = isTurn ? ROUNDS_OF_TURN : isQuick ? 1 : plan.rounds
  const warmRounds = isQuick ? 1 : plan.warmRounds
  try {
    for (let at = 0; at < warmRounds + rounds; at++)
      for (const { request, contender, measured } of pairs) {
        const round = await measureRound(contender, request, plan)
        if (at >= warmRounds) measured.push(round)
      }
  } finally {
    for (const contender of contenders) await contender.stop()
  }
  return pairs.map(({ request, contender, measured }) => ({
    request,
    server: contender.name,
    cpu: takeMedian(measured.map(it => it.cpu)),
    main: takeMedian(measured.map(it => it.main)),
    cpus: measured.map(it => it.cpu),
    mains: measured.map(it => it.main),
    rates: measured.map(it => it.rate),
    rate: takeMedian(measured.map(it => it.rate)),
  }))
}

/**
 * The CPU time of the main thread of `other`, divided by that of `one`: the median of the rounds, because other load on the
 * machine changes from round to round.
 */
export function compareMain(one: Compared, other: Compared): number {
  return takeMedian(one.mains.map((main, at) => (other.mains[at] ?? 0) / main))
}

/** The same of all threads. */
export function compareCpu(one: Compared, other: Compared): number {
  return takeMedian(one.cpus.map((cpu, at) => (other.cpus[at] ?? 0) / cpu))
}

/** The rate of `one`, divided by that of `other`: the median of the rounds. */
export function compareRates(one: Compared, other: Compared): number {
  return takeMedian(one.rates.map((rate, at) => rate / (other.rates[at] ?? 0)))
}

async function measureRound(contender: Contender, kind: string, plan: Plan): Promise<Round> {
  const count = plan.requests[kind] ?? 0
  const texts = await contender.makeRequests(kind, count)
  const before = await contender.readUsage()
  const began = performance.now()
  await sendAll(contender.port, texts, plan.connections)
  const seconds = (performance.now() - began) / 1000
  const after = await contender.readUsage()
  return {
    cpu: (after.cpu - before.cpu) / count,
    main: (after.main - before.main) / count,
    rate: count / seconds,
  }
}
