/**
 * `node bench/import.ts [file or folder]`: processor time of making the sample patients, and of an import that creates
 * and one that finds everything unchanged. Without a file it imports sample patients that it has written as NDJSON.
 * Processor time, not wall time: the company on the machine does not count.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { samplePatients } from '../sample-patients/index.ts'
import { findFiles, importFiles } from '../src/backends/sqlite/import/index.ts'
import { openRepository } from '../src/backends/sqlite/index.ts'

const PATIENTS = 160
const now = Date.UTC(2026, 10, 13)
const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'))

try {
  await measure('Sample patients, 60', async () => [...samplePatients({ now })].length)
  const { files } = await findFiles([process.argv[2] ?? writeSample()], process.cwd())
  const repository = openRepository({ file: join(folder, 'fhir.db'), baseUrl: 'http://localhost:8080/fhir' })
  for (const name of ['Import, all new', 'Import, all unchanged']) {
    await measure(name, async () => {
      const { created, updated, unchanged, refused } = await importFiles({ files, repository })
      return created + updated + unchanged + refused
    })
  }
  repository.close()
  const mebibytes = Math.round(process.resourceUsage().maxRSS / 1024)
  process.stdout.write(`Largest resident memory ${mebibytes} MiB\n`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function measure(name: string, work: () => Promise<number>): Promise<void> {
  const before = process.cpuUsage()
  const resources = await work()
  const { user, system } = process.cpuUsage(before)
  const seconds = (user + system) / 1e6
  const rate = Math.round(resources / seconds)
  process.stdout.write(
    `${name}: ${resources} resources, ${seconds.toFixed(2)} s of processor time, ${rate}/s\n`,
  )
}

function writeSample(): string {
  const lines = [...samplePatients({ now, count: PATIENTS })].map(it => JSON.stringify(it))
  const file = join(folder, 'sample.ndjson.gz')
  writeFileSync(file, gzipSync(lines.join('\n')))
  return file
}
