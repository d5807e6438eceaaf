/**
 * `node bench/import.ts [file or folder]`: the CPU time of reading the sample patients, of an import that creates, and of one
 * that finds everything unchanged. Without a file it imports sample patients that it has written as NDJSON.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { openRepository } from '../src/backends/sqlite/index.ts'
import { findFiles, importFiles } from '../src/import/index.ts'
import { samplePatients } from '../src/sample-patients/index.ts'
import { reportValues, type Value } from './shared/report.ts'

const PATIENTS = 160
const now = Date.UTC(2026, 10, 13)
const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'))

try {
  const values = [await measure('sample patients', async () => [...samplePatients({ now })].length)]
  const { files } = await findFiles([process.argv[2] ?? writeSample()], process.cwd())
  const repository = openRepository({ file: join(folder, 'fhir.db'), baseUrl: 'http://localhost:8080/fhir' })
  for (const name of ['import, all new', 'import, all unchanged'])
    values.push(
      await measure(name, async () => {
        const { created, updated, unchanged, refused } = await importFiles({ files, repository })
        return created + updated + unchanged + refused
      }),
    )
  repository.close()
  const value = process.resourceUsage().maxRSS / 1000
  await reportValues([...values, { measured: 'import: largest RSS (MB)', value }])
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function measure(name: string, work: () => Promise<number>): Promise<Value> {
  const before = process.cpuUsage()
  const resources = await work()
  const { user, system } = process.cpuUsage(before)
  return { measured: `${name}: CPU of a resource (µs)`, value: (user + system) / resources }
}

function writeSample(): string {
  const lines = [...samplePatients({ now, count: PATIENTS })].map(it => JSON.stringify(it))
  const file = join(folder, 'sample.ndjson.gz')
  writeFileSync(file, gzipSync(lines.join('\n')))
  return file
}
