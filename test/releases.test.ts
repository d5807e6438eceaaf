import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { eachDatabase } from './support/databases.ts'
import { CLIENT, restoreRelease, SECRET, visit } from './support/release-data.ts'
import { newPlace, type Place, startProcess } from './support/started.ts'

const FOLDER = join(import.meta.dirname, 'releases')

async function run(args: readonly string[], place: Place) {
  const command = startProcess(args, place)
  const { exitCode } = await command.ended()
  return { exitCode, text: command.stdout() + command.stderr() }
}

eachDatabase((name, _open, create) => {
  for (const release of readdirSync(FOLDER))
    describe(`the data of release ${release}`, () => {
      it('are upgraded by a start, and everything in them still works (UPGRADE-4)', async () => {
        const place = await newPlace({
          SMART_SECRET: SECRET,
          SMART_SAMPLE_PATIENTS: '1',
          ...(name === 'PostgreSQL' && { SMART_DATABASE_URL: await create('empty') }),
        })
        try {
          await restoreRelease(join(FOLDER, release), place)
          const before = await run(['upgrade', 'check'], place)
          assert.equal(before.exitCode, 3, before.text)
          const servers = startProcess(['start'], place)
          await servers.printed(/is running/)
          const user = visit(place)
          await user.signIn()
          await user.launch('patient-1')
          assert.equal((await user.api('summary')).status, 200)
          servers.child.kill('SIGTERM')
          await servers.ended()
          assert.match((await run(['client', 'show', '--id', CLIENT], place)).text, /app\.example/)
          const verified = await run(['audit', 'verify'], place)
          assert.equal(verified.exitCode, 0, verified.text)
        } finally {
          place.remove()
        }
      })
    })
})
