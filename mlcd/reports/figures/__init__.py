"""Still pictures as SVG, without a browser; the charts of pages and reports are drawn by `pages/`."""
