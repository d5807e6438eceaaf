import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import { EXPORT_DOWNLOADS_WAITING, EXPORT_TURN_MS } from './limits.ts'
import { createDownloads } from './open-exports.ts'

const OWNER = { issuer: '', client: 'one' }
const OPEN = { destroyed: false }

/** The downloads of which a client has started two. */
async function startTwo() {
  const downloads = createDownloads()
  const first = await downloads.take(OWNER, OPEN)
  assert(first && (await downloads.take(OWNER, OPEN)))
  return { downloads, first }
}

describe('createDownloads', () => {
  it('lets a client have two downloads at a time, and others their own; further ones take turns (EXPORT-9)', async () => {
    const { downloads, first } = await startTwo()
    assert(await downloads.take({ issuer: 'https://other', client: 'one' }, OPEN))
    const order: string[] = []
    const take = async (name: string, connection = OPEN) => {
      const release = await downloads.take(OWNER, connection)
      order.push(release ? name : `${name} left`)
      return release
    }
    const [third, gone, fourth] = [take('third'), take('gone', { destroyed: true }), take('fourth')]
    first()
    const release = await third
    assert.deepEqual(order, ['third'])
    release?.()
    await Promise.all([gone, fourth])
    assert.deepEqual(order, ['third', 'gone left', 'fourth'])
  })

  it('refuses a download whose turn does not come, and those beyond a number (EXPORT-9)', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      const { downloads, first } = await startTwo()
      const waiting = Array.from({ length: EXPORT_DOWNLOADS_WAITING }, () => downloads.take(OWNER, OPEN))
      assert.equal(await downloads.take(OWNER, OPEN), undefined)
      mock.timers.tick(EXPORT_TURN_MS)
      assert((await Promise.all(waiting)).every(it => it === undefined))
      first()
      assert(await downloads.take(OWNER, OPEN))
    } finally {
      mock.timers.reset()
    }
  })
})
