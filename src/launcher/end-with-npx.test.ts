import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { endWithNpx } from './end-with-npx.ts'

const NPX = { npm_command: 'exec', npm_lifecycle_script: "'sallyport'" }

describe('endWithNpx', () => {
  function countEnds(t: TestContext, env: { readonly [name: string]: string }): number {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const started = { env, ppid: 100 }
    let ends = 0
    endWithNpx(() => ends++, started)
    t.mock.timers.tick(5_000)
    assert.equal(ends, 0, 'ended although its parent is there')
    started.ppid = 1
    t.mock.timers.tick(5_000)
    return ends
  }

  it('ends once when npx is gone (PACKAGE-6)', t => assert.equal(countEnds(t, NPX), 1))

  for (const [name, env] of Object.entries({
    'a shell': {},
    'npm start': { npm_command: 'start', npm_lifecycle_script: 'sallyport start' },
    'another program of npx': { ...NPX, npm_lifecycle_script: 'playwright test' },
  }))
    it(`outlives ${name} (PACKAGE-6)`, t => assert.equal(countEnds(t, env), 0))
})
