import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, it } from 'node:test'
import { CHART, listRendered, listValuesFiles, readRendered } from './chart.ts'

const VALUES = listValuesFiles()

describe('the kept renderings of the chart', () => {
  for (const values of VALUES)
    it(`are those of the chart with the values ${values.name}`, () => {
      assert(readRendered(values).objects.length > 5)
    })

  it('are those of documented values and of no others', () => {
    assert.deepEqual(listRendered().toSorted(), VALUES.map(({ name }) => name).toSorted())
  })
})

describe('the chart', () => {
  it('has the alerts of deploy/prometheus', () => {
    const common = resolve(CHART, '../../prometheus/alerts.yaml')
    assert.equal(readFileSync(join(CHART, 'files/alerts.yaml'), 'utf8'), readFileSync(common, 'utf8'))
  })
})
