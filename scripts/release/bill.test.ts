import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, it } from 'node:test'
import { makeShrinkwrap } from '../build/shrinkwrap.ts'
import { describeBill, listLocked } from './bill.ts'

const ROOT = resolve(import.meta.dirname, '../..')

describe('the bill of materials of the package', () => {
  const bill = describeBill({ type: 'application', name: 'sallyport', packages: listLocked() })
  const known = new Set(bill.components.map(component => component['bom-ref']))

  it('lists the direct dependencies, and everything that is needed', () => {
    const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const [own] = bill.dependencies
    const direct = Object.entries(dependencies).map(([name, version]) => `${name}@${version}`)
    assert.deepEqual(own?.dependsOn.toSorted(), direct.toSorted())
    const needed = bill.dependencies.flatMap(({ dependsOn }) => dependsOn)
    assert.deepEqual(
      needed.filter(ref => !known.has(ref)),
      [],
    )
    assert.deepEqual(
      [...known].filter(ref => !needed.includes(ref)),
      [],
    )
  })

  it('lists what npm installs by the shrinkwrap of the package', () => {
    const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
    const shrinkwrap = JSON.parse(JSON.stringify(makeShrinkwrap({}, lock)))
    const locked = Object.entries<{ version: string }>(shrinkwrap.packages).flatMap(([path, { version }]) =>
      path === '' ? [] : `${path.split('node_modules/').at(-1)}@${version}`,
    )
    assert(locked.length > 90)
    assert.deepEqual([...known].toSorted(), [...new Set(locked)].toSorted())
  })

  it('names the licence and the checksum of every package', () => {
    for (const { name, licenses, hashes } of bill.components) {
      assert.match(licenses[0]?.expression ?? '', /^[\w.-]+$/, name)
      assert.match(hashes?.[0]?.content ?? '', /^[0-9a-f]{128}$/, name)
    }
  })
})
