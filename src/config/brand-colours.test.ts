import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import type { Shades } from '../web/ui/index.ts'
import { computeContrast, findColourProblems, makePalette, SURFACES } from './brand-colours.ts'

const none = { colour: undefined, darkColour: undefined }
const css = readFileSync(new URL('../web/ui/assets/sallyport.css', import.meta.url), 'utf8')

describe('the colour of an organization', () => {
  it('is compared with the surfaces of the style sheet', () => {
    const [light = '', dark = ''] = css.split('@media (prefers-color-scheme: dark)')
    for (const [theme, part] of [
      ['light', light],
      ['dark', dark],
    ] as const)
      assert.deepEqual(
        SURFACES[theme],
        ['surface', 'bg', 'sunken'].map(token => new RegExp(`--${token}: (#[0-9a-f]{6})`).exec(part)?.[1]),
      )
  })

  it('measures contrast as WCAG does', () => {
    assert.equal(computeContrast('#000000', '#ffffff'), 21)
    assert.equal(computeContrast('#767676', '#ffffff').toFixed(2), '4.54')
    assert.equal(computeContrast('#ffffff', '#777777').toFixed(2), '4.48')
  })

  it('is refused with the ratio and a colour that is accepted', () => {
    const [problem = '', ...more] = findColourProblems({ ...none, colour: '#00a0e0' })
    assert.deepEqual(more, [])
    assert.match(
      problem,
      /^SMART_BRAND_COLOUR=#00a0e0 has a contrast of 2\.\d\d:1 on #\w{6} of the light theme/,
    )
    const suggested = /\. (#[0-9a-f]{6}) has the same hue/.exec(problem)?.[1]
    assert.deepEqual(findColourProblems({ ...none, colour: suggested }), [])
    assert.deepEqual(findColourProblems({ colour: '#3942b8', darkColour: '#3942b8' }).length, 1)
  })

  it('gives readable colours for both themes, whatever the colour', () => {
    for (const colour of ['#005eb8', '#000000', '#7a0019', '#006747', '#4b0082', '#3942b8']) {
      const palette = makePalette({ ...none, colour })
      assert.ok(palette)
      for (const theme of ['light', 'dark'] as const) {
        const { accent, accentHover, onAccent, accentSoft }: Shades = palette[theme]
        for (const surface of [...SURFACES[theme], accentSoft])
          assert.ok(computeContrast(accent, surface) >= 4.5, `${colour} ${theme} ${surface}`)
        for (const fill of [accent, accentHover]) assert.ok(computeContrast(onAccent, fill) >= 4.5)
      }
    }
  })

  it('is left to the style sheet without a setting', () => {
    assert.equal(makePalette(none), undefined)
  })
})
