/**
 * No single request keeps the event loop busy for more than 200 ms, or takes more than 64 MB beyond its own body
 * (docs/limits.md). Each case grows one dimension of a request to its limit, or far beyond it. The servers run in a
 * process of their own with default settings. Time is processor time in units of a fixed piece of work that the same
 * process does just before (test/support/cost-probe.ts), so that a slow or busy machine changes nothing.
 *
 * `COST_REPORT=1` prints what each case costs.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import * as app from './cost/app.ts'
import * as auth from './cost/auth.ts'
import type { Cases, RefusedCases } from './cost/cases.ts'
import * as fhir from './cost/fhir.ts'
import { LIMITED } from './cost/limited.ts'
import { loadResources, loadStore } from './cost/load.ts'
import {
  type Measured,
  type MeasuredServers,
  startMeasuredGateway,
  startMeasuredServers,
} from './support/measured-servers.ts'

/** The unit takes about 5 ms on the machines that this was written on: 40 units are 200 ms. */
const MOST_UNITS = 40
const MOST_MEMORY = 64 * 1024 * 1024

/** A collection of garbage, or of what earlier requests wrote, only ever adds to a measurement: the least counts. */
const ATTEMPTS = 5

interface RequestCost {
  readonly units: number
  /** Bytes beyond those of the body. */
  readonly memory: number
}

function costOf({ cost }: Measured, bodyBytes: number): RequestCost {
  return { units: cost.busy / cost.unit, memory: cost.memory - bodyBytes }
}

function isWithinBudget({ units, memory }: RequestCost): boolean {
  return units < MOST_UNITS && memory < MOST_MEMORY
}

/** What was said, on a page, in an OperationOutcome or by a redirect. */
function saidIn({ status, text, location }: Measured): string {
  return `${status} ${decodeURIComponent(location.replaceAll('+', ' '))} ${text.slice(0, 20_000)}`
}

function isRefused({ status, location }: Measured): boolean {
  return (status >= 400 && status < 500) || /[?&]error=/.test(location)
}

function describeCost(name: string, start: () => Promise<MeasuredServers>, groups: readonly Group[]): void {
  describe(`the cost of one request to ${name}`, { concurrency: 1 }, () => {
    let servers: MeasuredServers | undefined
    before(async () => {
      servers = await start()
      await loadResources(servers)
      await loadStore(servers)
    })
    after(() => servers?.end())

    function check(dimension: string, make: Cases[string], judge: (measured: Measured) => void): void {
      it(`is bounded: ${dimension}`, async () => {
        assert.ok(servers)
        let cost = { units: 0, memory: 0 }
        for (let attempts = 0; attempts < ATTEMPTS; attempts++) {
          const { url, ...sent } = await make(servers)
          const measured = await servers.measure(url, sent)
          judge(measured)
          cost = costOf(measured, sent.body?.length ?? 0)
          if (isWithinBudget(cost)) break
        }
        const report = `${cost.units.toFixed(1)} units of processor time, ${(cost.memory / 2 ** 20).toFixed(0)} MB`
        if (process.env.COST_REPORT) console.log(`${dimension}: ${report}`)
        assert.ok(isWithinBudget(cost), report)
      })
    }

    for (const { accepted = {}, refused = {}, answered = {} } of groups) {
      for (const [dimension, make] of Object.entries(accepted))
        check(`${dimension}, up to the limit`, make, measured =>
          assert.ok(measured.status < 400 && !isRefused(measured), saidIn(measured)),
        )
      for (const [dimension, [names, make]] of Object.entries(refused))
        check(`${dimension}, beyond the limit`, make, measured => {
          assert.ok(isRefused(measured), saidIn(measured))
          assert.match(saidIn(measured), names)
        })
      for (const [dimension, make] of Object.entries(answered))
        check(dimension, make, measured => assert.ok(measured.status < 500, saidIn(measured)))
    }
  })
}

interface Group {
  readonly accepted?: Cases
  readonly refused?: RefusedCases
  /** Cases that may be answered either way. */
  readonly answered?: Cases
}

const ofModule = ({ ACCEPTED, REFUSED, ANSWERED }: typeof fhir): Group => ({
  accepted: ACCEPTED,
  refused: REFUSED,
  answered: ANSWERED,
})
const LIMITED_GROUP: Group = { accepted: LIMITED }

describeCost('the servers with the embedded FHIR server', startMeasuredServers, [
  ...[fhir, auth, app].map(ofModule),
  LIMITED_GROUP,
])
describeCost('the gateway', startMeasuredGateway, [ofModule(fhir), LIMITED_GROUP])
