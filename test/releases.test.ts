import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { eachDatabase } from './support/databases.ts'
import { CLIENT, restoreRelease, SECRET, visit } from './support/release-data.ts'
import { newPlace, runProgram, startProcess } from './support/started.ts'

const FOLDER = join(import.meta.dirname, 'releases')

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
          const before = await runProgram(['upgrade', 'check'], place)
          assert.equal(before.exitCode, 3, before.stderr)
          const servers = startProcess(['start'], place)
          await servers.printed(/is running/)
          const user = visit(place)
          await user.signIn()
          await user.launch('patient-1')
          assert.equal((await user.api('summary')).status, 200)
          servers.child.kill('SIGTERM')
          await servers.ended()
          assert.match((await runProgram(['client', 'show', '--id', CLIENT], place)).stdout, /app\.example/)
          const verified = await runProgram(['audit', 'verify'], place)
          assert.equal(verified.exitCode, 0, verified.stderr)
        } finally {
          place.remove()
        }
      })
    })
})
