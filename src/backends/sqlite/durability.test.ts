import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, it } from 'node:test'
import { startFhir } from './testing/fhir.ts'

const WRITER = new URL('./testing/writer.ts', import.meta.url).pathname

let folder: string
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'fhir-kill-'))
})
after(() => rmSync(folder, { recursive: true }))

/** Kills a server during writes, and returns the ids that it acknowledged. */
async function writeAndDie(dataFile: string, run: string, writes: number): Promise<readonly string[]> {
  const child = spawn(process.execPath, [WRITER, dataFile, run], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ids: string[] = []
  for await (const line of createInterface(child.stdout)) {
    ids.push(line)
    if (ids.length === writes) child.kill('SIGKILL')
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  assert.equal(child.signalCode, 'SIGKILL')
  return ids
}

describe('a server that is killed', () => {
  it('keeps every acknowledged write complete and searchable (FHIR-11)', async () => {
    const dataFile = join(folder, 'fhir.db')
    const acknowledged: string[] = []
    for (const [run, writes] of [
      ['a', 25],
      ['b', 120],
    ] as const)
      acknowledged.push(...(await writeAndDie(dataFile, run, writes)))
    assert(acknowledged.length >= 145)
    const fhir = await startFhir({ dataFile })
    for (const id of acknowledged) assert.equal((await fhir(`GET Patient/${id}`)).body.active, true, id)
    const { total } = (await fhir('GET Patient?active=true&_summary=count')).body
    const all = (await fhir('GET Patient?_summary=count')).body.total
    assert.equal(total, all, 'no resource without its search values')
    // Each run may have stored one more resource without an acknowledgement.
    assert(Number(all) >= acknowledged.length && Number(all) <= acknowledged.length + 2, `${all}`)
    await fhir.close()
  })
})
