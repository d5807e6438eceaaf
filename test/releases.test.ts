import assert from 'node:assert/strict'
import { cpSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { eachDatabase } from './support/databases.ts'
import { checkOut, findLastRelease } from './support/release-code.ts'
import { CLIENT, restoreRelease, SECRET, visit } from './support/release-data.ts'
import { newPlace, type Place, runProgram, startProcess } from './support/started.ts'
import { IS_SHORT } from './support/thorough.ts'

const FOLDER = join(import.meta.dirname, 'releases')

const all = readdirSync(FOLDER).toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }))
const releases = IS_SHORT ? all.slice(-1) : all
const last = findLastRelease()
if (last === undefined)
  process.stderr.write('NOT TRIED: the way back to the last release, which the history of this clone lacks\n')

/** Starts the servers and launches an app. A failure is what they print instead. */
async function use(place: Place, program?: readonly string[]): Promise<string | undefined> {
  const servers = startProcess(['start'], place, program)
  try {
    await servers.printed(/is running/)
  } catch {
    return servers.stderr()
  }
  const user = visit(place)
  await user.signIn()
  await user.launch('patient-1')
  assert.equal((await user.api('summary')).status, 200)
  servers.child.kill('SIGTERM')
  assert.equal((await servers.ended()).exitCode, 0)
  return undefined
}

describe('the way back to the last release', () => {
  it('is the last release on the newer database, which it uses or refuses in one line, or the backup (UPGRADE-4)', {
    skip: last === undefined && 'the history of this clone has no release',
  }, async () => {
    assert(last)
    const place = await newPlace({ SMART_SECRET: SECRET, SMART_SAMPLE_PATIENTS: '1', SMART_WORKERS: '1' })
    try {
      const older = [process.execPath, checkOut(last, join(place.folder, 'older'))]
      const [data, backup] = [join(place.folder, 'data'), join(place.folder, 'backup')]
      await restoreRelease(join(FOLDER, last.version), place)
      cpSync(data, backup, { recursive: true })
      assert.equal(await use(place), undefined)
      assert.match(
        (await use(place, older)) ?? '',
        /^$|^[^\n]*a newer version of Sallyport changed it[^\n]*\n$/,
      )
      rmSync(data, { recursive: true })
      cpSync(backup, data, { recursive: true })
      assert.equal(await use(place, older), undefined)
    } finally {
      place.remove()
    }
  })
})

eachDatabase((name, _open, create) => {
  if (IS_SHORT && name === 'PostgreSQL') return
  for (const release of releases)
    describe(`the data of release ${release}`, () => {
      it('are upgraded by a start, and everything in them still works (UPGRADE-4)', async () => {
        const place = await newPlace({
          SMART_SECRET: SECRET,
          SMART_SAMPLE_PATIENTS: '1',
          ...(name === 'PostgreSQL' && { SMART_DATABASE_URL: await create('empty') }),
        })
        try {
          await restoreRelease(join(FOLDER, release), place)
          const before = await runProgram(['upgrade', 'check'], place)
          assert.equal(before.exitCode, 3, before.stderr)
          assert.equal(await use(place), undefined)
          assert.match((await runProgram(['client', 'show', '--id', CLIENT], place)).stdout, /app\.example/)
          const verified = await runProgram(['audit', 'verify'], place)
          assert.equal(verified.exitCode, 0, verified.stderr)
        } finally {
          place.remove()
        }
      })
    })
})
