// Shows the current page in the list of pages, and lets the keyboard scroll whatever is too wide.
const pages = document.getElementById('pages')
const current = pages.querySelector('[aria-current]')
if (current)
  pages.scrollTop +=
    current.getBoundingClientRect().top - pages.getBoundingClientRect().top - pages.clientHeight / 2

function makeScrollable() {
  for (const box of document.querySelectorAll('.site-content :is(.scroll, pre)'))
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0
}
makeScrollable()
addEventListener('resize', makeScrollable)
